// In: the leaders that etcd names. Out: the notice that this launcher is done. Entered by a launcher that leaves while
// its job has no leader.
#include "rendezvous/state_leaving.h"

#include <algorithm>
#include <utility>

#include "rendezvous/job_context.h"

namespace lrun::launcher {
namespace {

constexpr Duration kShortestSearch(3000);

}  // namespace

Leaving::Leaving(JobContext& context, LauncherMessage last_message)
    : context_(context), last_message_(std::move(last_message)) {
  context.election->only_observe();
  if (context.election->leads()) return;  // then Job::finish() waits for the others
  // The lease of the last leader, and a heartbeat in which the next one waits for us.
  const Duration heartbeat = context.plan.heartbeat;
  limit_ = context.loop.after(std::max(heartbeat, kShortestSearch) + heartbeat, [this] { give_up(); });
}

void Leaving::link_joined() {
  if (!last_message_) return;
  context_.link->stay_closed();
  context_.link->send(*last_message_);
  was_sent_ = true;                                       // the leader closes the connection when it has heard that
  if (context_.election->leads()) last_message_.reset();  // Job::finish() waits for the others from here
}

void Leaving::link_broken(const std::string& /*why*/, const std::string& /*hint*/) {
  if (!last_message_) return;
  was_sent_ ? give_up() : context_.election->campaign_again();
}

void Leaving::give_up() {
  JobContext& context = context_;
  if (context.link) context.link->close();
  context.election->stop();
  context.servers.stop_leading();
  context.finish_soon();
  context.enter<Over>();
}

}  // namespace lrun::launcher
