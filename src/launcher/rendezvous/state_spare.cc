// In: the successors that the leader has named, and its loss. Out: a link to the one that leads. Entered by a node that
// waits for a place in the job.
#include "rendezvous/state_spare.h"

#include "rendezvous/job_context.h"

namespace lrun::launcher {
namespace {

/// Two more than the members have for their search: they may begin it that much later.
constexpr int kHeartbeatsOfSpare = 8;
constexpr Duration kPauseOfSpare(50);

}  // namespace

void WaitingAsSpare::link_joined() {
  limit_.cancel();
  tried_ = 0;
}

void WaitingAsSpare::link_broken(const std::string& why, const std::string& /*hint*/) {
  if (!limit_.armed()) {
    const Duration limit = kHeartbeatsOfSpare * context_.plan.heartbeat;
    limit_ = context_.loop.after(limit, [&context = context_, limit] {
      if (context.link) context.link->close();
      context.end("no leader was found within " + format_duration(limit));
    });
    JobContext& context = context_;
    context.events->redirected("the leader at " + context.link->server_address() + " is lost: " + why +
                               "; looking for the next one");
    if (context.is_over()) return;  // and this state is gone
  }
  // Only a leader answers at such a port.
  next_ = context_.loop.after(tried_ == 0 ? Duration::zero() : kPauseOfSpare, [this] {
    const Successor& next = line_.at(tried_++ % line_.size());
    context_.open_link(next.address, next.standby_port, Duration::zero());
  });
}

}  // namespace lrun::launcher
