#include "runtime/collectives/shm/collectives.h"

#include <exception>
#include <string>
#include <utility>

#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/common/owner_process.h"
#include "runtime/collectives/common/queued_work.h"
#include "runtime/collectives/common/work_queue.h"
#include "runtime/collectives/shm/arena.h"
#include "runtime/collectives/shm/barrier.h"
#include "runtime/collectives/shm/operations.h"
#include "runtime/collectives/shm/setup.h"

namespace lrun::detail {
namespace {

class ShmCollectives final : public PostedCollectives {
 public:
  ShmCollectives(ShmSetup setup, const GroupOptions& options)
      : rank_(options.rank),
        shown_rank_(options.name_of(options.rank)),
        timeout_(options.timeout),
        region_(std::move(setup.region)),
        barrier_(region_, rank_, std::move(setup.pids), std::move(setup.watch), timeout_, options.ranks_above),
        arena_(std::make_shared<ShmArena>(std::move(setup.memory), ShmRegion::bytes(region_.world_size()), rank_,
                                          region_.world_size())),
        operations_(region_, barrier_, *arena_, rank_),
        queue_(std::make_unique<WorkQueue>(
            [this](Post& post, std::uint64_t sequence, bool patient) { return perform(post, sequence, patient); })) {
    // Nobody goes on, or ends, while another still reads the store.
    barrier_.begin(Call::Operation::kBarrier, 0);
    barrier_.arrive_and_wait(true);
    GroupRendezvous::note_made(options);
  }

  ShmCollectives(const ShmCollectives&) = delete;
  ShmCollectives& operator=(const ShmCollectives&) = delete;

  ~ShmCollectives() override {
    if (!owner_.is_this()) {
      // The rank is the parent's and stays. The thread of the queue is not here, so that neither joining it nor
      // destroying the condition on which it waits would return.
      static_cast<void>(queue_.release());
      return;
    }
    // What is still in flight would wait for the others up to its deadline.
    if (!queue_->idle())
      abort("rank " + std::to_string(shown_rank_) + " left the group while operations were in flight");
    barrier_.leave();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int world_size() const override { return region_.world_size(); }
  [[nodiscard]] std::string name() const override { return "shm"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return timeout_; }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    return finish({allocate_bucket_call(count, dtype), {}, {}});
  }

  Failure fail(const Failure& failure) override {
    owner_.require("the group");
    return barrier_.fail(failure);
  }

  std::unique_ptr<CollectiveWork> start(Post post) override {
    require_usable();
    return start_queued(*queue_, std::move(post), owner_);
  }

  at::Tensor finish(Post post) override {
    require_usable();
    return finish_queued(*queue_, std::move(post));
  }

 private:
  void require_usable() {
    owner_.require("the group");
    if (const auto failure = barrier_.failure()) failure->raise();
  }

  // The edge where errors become values: the thread of the queue has nobody to throw to.
  std::optional<Failure> perform(Post& post, std::uint64_t sequence, bool patient) {
    try {
      require_usable();
      operations_.perform(post, sequence, patient);
      return std::nullopt;
    } catch (const std::exception& error) {
      const Part shown = post.shown(sequence);
      return barrier_.fail({Failure::Kind::kOther, "rank " + std::to_string(shown_rank_) + ": " +
                                                       name_call(shown.operation, shown.sequence) + ": " +
                                                       error.what()});
    }
  }

  const OwnerProcess owner_;
  const int rank_;
  const int shown_rank_;  // in messages
  const std::chrono::milliseconds timeout_;
  ShmRegion region_;
  ShmBarrier barrier_;
  std::shared_ptr<ShmArena> arena_;  // shared: with the buckets, which may live longer
  ShmOperations operations_;
  std::unique_ptr<WorkQueue> queue_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<PostedCollectives> make_shm(const GroupOptions& options) {
  return std::make_unique<ShmCollectives>(meet_and_share(options), options);
}

}  // namespace lrun::detail
