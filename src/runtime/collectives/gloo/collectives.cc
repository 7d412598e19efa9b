#include "runtime/collectives/gloo/collectives.h"

#include <lrun/error.h>

#include <optional>
#include <utility>

#include "runtime/collectives/bootstrap/group_rendezvous.h"
#include "runtime/collectives/common/queued_collectives.h"
#include "runtime/collectives/gloo/channel.h"
#include "runtime/collectives/gloo/operations.h"
#include "runtime/collectives/gloo/setup.h"

namespace lrun::detail {
namespace {

class GlooCollectives final : public QueuedCollectives {
 public:
  GlooCollectives(GlooSetup setup, const GroupOptions& options)
      : QueuedCollectives("gloo", options.rank, options.world_size, options.timeout, options.name_of(options.rank)),
        channel_(std::make_unique<GlooChannel>(std::move(setup.link), std::move(setup.peers), options)),
        operations_(*channel_, options.rank, options.world_size) {
    // No rank goes on, or ends, while another still reads the store.
    Post barrier{barrier_call(), {}, {}};
    operations_.perform(barrier, 0);
    GroupRendezvous::note_made(options);
  }
  GlooCollectives(const GlooCollectives&) = delete;
  GlooCollectives& operator=(const GlooCollectives&) = delete;
  ~GlooCollectives() override {
    if (close()) {
      channel_->leave();
    } else {
      static_cast<void>(channel_.release());  // the threads behind it are the parent's: they would not end here
    }
  }

 private:
  void perform(Post& post, std::uint64_t sequence, bool /*patient*/) override { operations_.perform(post, sequence); }
  std::optional<Failure> failure() override { return channel_->failure(); }
  Failure fail_group(const Failure& failure) override { return channel_->fail(failure); }

  std::unique_ptr<GlooChannel> channel_;
  GlooOperations operations_;
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
