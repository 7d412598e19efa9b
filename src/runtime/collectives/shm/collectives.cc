#include "runtime/collectives/shm/collectives.h"

#include <optional>
#include <utility>

#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/common/queued_collectives.h"
#include "runtime/collectives/shm/arena.h"
#include "runtime/collectives/shm/barrier.h"
#include "runtime/collectives/shm/operations.h"
#include "runtime/collectives/shm/setup.h"

namespace lrun::detail {
namespace {

class ShmCollectives final : public QueuedCollectives {
 public:
  ShmCollectives(ShmSetup setup, const GroupOptions& options)
      : QueuedCollectives("shm", options.rank, options.world_size, options.timeout, options.name_of(options.rank)),
        region_(std::move(setup.region)),
        barrier_(region_, options.rank, std::move(setup.pids), std::move(setup.watch), options.timeout,
                 options.ranks_above),
        arena_(std::make_shared<ShmArena>(std::move(setup.memory), ShmRegion::bytes(options.world_size), options.rank,
                                          options.world_size)),
        operations_(region_, barrier_, *arena_, options.rank) {
    // No rank goes on, or ends, while another still reads the store.
    barrier_.begin(Call::Operation::kBarrier, 0);
    barrier_.arrive_and_wait(true);
    GroupRendezvous::note_made(options);
  }
  ShmCollectives(const ShmCollectives&) = delete;
  ShmCollectives& operator=(const ShmCollectives&) = delete;
  ~ShmCollectives() override {
    if (close()) barrier_.leave();
  }

 private:
  void perform(Post& post, std::uint64_t sequence, bool patient) override {
    operations_.perform(post, sequence, patient);
  }
  std::optional<Failure> failure() override { return barrier_.failure(); }
  Failure fail_group(const Failure& failure) override { return barrier_.fail(failure); }

  ShmRegion region_;
  ShmBarrier barrier_;
  std::shared_ptr<ShmArena> arena_;  // shared: with the buckets, which may live longer
  ShmOperations operations_;
};

}  // namespace

std::unique_ptr<PostedCollectives> make_shm(const GroupOptions& options) {
  return std::make_unique<ShmCollectives>(meet_and_share(options), options);
}

}  // namespace lrun::detail
