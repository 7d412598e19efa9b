#include "runtime/collectives/gloo/collectives.h"

#include <lrun/error.h>

#include <exception>
#include <string>
#include <utility>

#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/common/owner_process.h"
#include "runtime/collectives/common/queued_work.h"
#include "runtime/collectives/common/work_queue.h"
#include "runtime/collectives/gloo/channel.h"
#include "runtime/collectives/gloo/operations.h"
#include "runtime/collectives/gloo/setup.h"

namespace lrun::detail {
namespace {

class GlooCollectives final : public PostedCollectives {
 public:
  GlooCollectives(GlooSetup setup, const GroupOptions& options)
      : options_(options),
        channel_(std::make_unique<GlooChannel>(std::move(setup.link), std::move(setup.peers), options)),
        operations_(*channel_, options.rank, options.world_size),
        queue_(std::make_unique<WorkQueue>(
            [this](Post& post, std::uint64_t sequence, bool /*patient*/) { return perform(post, sequence); })) {
    // Nobody goes on, or ends, while another still reads the store.
    Post barrier{barrier_call(), {}, {}};
    operations_.perform(barrier, 0);
    GroupRendezvous::note_made(options);
  }

  GlooCollectives(const GlooCollectives&) = delete;
  GlooCollectives& operator=(const GlooCollectives&) = delete;

  ~GlooCollectives() override {
    if (!owner_.is_this()) {
      // The rank is the parent's and stays; the threads behind these are not here, so that nothing of them ends.
      static_cast<void>(queue_.release());
      static_cast<void>(channel_.release());
      return;
    }
    if (!queue_->idle()) {
      abort("rank " + std::to_string(options_.name_of(options_.rank)) +
            " left the group while operations were in flight");
    }
    queue_.reset();
    channel_->leave();
  }

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int world_size() const override { return options_.world_size; }
  [[nodiscard]] std::string name() const override { return "gloo"; }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return options_.timeout; }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    return finish({allocate_bucket_call(count, dtype), {}, {}});
  }

  Failure fail(const Failure& failure) override {
    owner_.require("the group");
    return channel_->fail(failure);
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
    if (const auto failure = channel_->failure()) failure->raise();
  }

  // The edge where errors become values: the thread of the queue has nobody to throw to.
  std::optional<Failure> perform(Post& post, std::uint64_t sequence) {
    try {
      require_usable();
      operations_.perform(post, sequence);
      return std::nullopt;
    } catch (const std::exception& error) {
      const Part shown = post.shown(sequence);
      return channel_->fail({Failure::Kind::kOther, "rank " + std::to_string(options_.name_of(options_.rank)) + ": " +
                                                        name_call(shown.operation, shown.sequence) + ": " +
                                                        error.what()});
    }
  }

  const OwnerProcess owner_;
  const GroupOptions options_;
  std::unique_ptr<GlooChannel> channel_;
  GlooOperations operations_;
  std::unique_ptr<WorkQueue> queue_;  // last: its thread uses the others
};

}  // namespace

std::unique_ptr<PostedCollectives> make_gloo(const GroupOptions& options) {
  if (!has_gloo()) {
    throw Unsupported(
        "backend 'gloo' is not in this build of liblrun: build it where gloo's headers are (libgloo-dev)");
  }
  return std::make_unique<GlooCollectives>(meet_and_connect(options), options);
}

}  // namespace lrun::detail
