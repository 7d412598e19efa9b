// In: what happens to the workers of this node. Out: messages for the leader, and the next state of the job. Called by
// the run of this node, which hears of the leader through JobEvents.
#include "rendezvous/job.h"

#include <utility>

namespace lrun::launcher {
namespace {

using Kind = LauncherMessage::Kind;

}  // namespace

Job::Job(EventLoop& loop, const RendezvousPlan& plan, JoinRecord record, MergeReports merge,
         std::size_t max_store_connections, std::string secret, const std::string& etcd_user)
    : context_(loop, {.plan = plan,
                      .record = std::move(record),
                      .merge = std::move(merge),
                      .max_store_connections = max_store_connections,
                      .secret = std::move(secret)}) {
  if (plan.etcd.empty()) {
    context_.open_first_link();
    return;
  }
  context_.election = Campaigning::make_election(context_, etcd_user);
  context_.enter<Campaigning>();
  // A node that cannot start its workers only reports that.
  if (!context_.servers.record().cannot_start.empty()) context_.election->only_observe();
  context_.election->campaign();
}

void Job::report(const std::string& text) {
  context_.part.report = text;
  context_.part.is_leaderless() ? context_.report_alone() : context_.send(Kind::kReport, text);
}

void Job::ready(int attempt, const std::string& history, const std::vector<FileOwner>& keeps) {
  context_.servers.open_store();
  context_.part.ready = {.kind = Kind::kReady,
                         .round = context_.part.round() + 1,
                         .text = history.substr(0, kMostReportBytes),
                         .attempt = attempt,
                         .port = context_.servers.record().store_port,
                         .keeps = keeps};
  if (context_.link) context_.link->send(*context_.part.ready);
}

void Job::leave_with(Kind kind, const std::string& text) {
  if (context_.is_over()) return;
  if (kind == Kind::kLeave && context_.election && context_.part.is_leaderless() && !joined()) {
    const LauncherMessage last{.kind = kind, .round = context_.part.round(), .text = text.substr(0, kMostReportBytes)};
    return context_.enter<Leaving>(last);
  }
  context_.send(kind, text);
  if (context_.link) context_.link->close();
  // A rendezvous that was opened for a vote ends, too: the vote does not count any more.
  const bool leads = context_.election && context_.election->leads();
  const bool is_candidate = std::holds_alternative<FailingOver>(context_.state);
  if (context_.election && !leads) context_.election->stop();
  if ((context_.election && !leads) || is_candidate) context_.servers.stop_leading();
  context_.watch.reset();
  context_.enter<Over>();
}

void Job::drop_out(const std::string& why) {
  leave_with(Kind::kDropOut, why);
  if (!context_.election || context_.servers.rendezvous() == nullptr) return;
  // The key goes at once, so that the others need not wait for the end of our lease.
  context_.election->resign(std::nullopt, [] {});
  close_ = context_.loop.after(Duration::zero(), [this] { context_.servers.stop_leading(); });
}

void Job::abandon() {
  // A word of ours would come to the others before they see that we are gone, and be taken for the end of the job.
  if (!has_successors()) return;
  context_.watch.reset();
  context_.servers.abandon();
  context_.link->close();
  context_.enter<Over>();
}

void Job::finish(const std::string& text, Duration limit, std::function<void()> finished) {
  leave(text);
  context_.finished = std::move(finished);
  const auto done = [this] {
    context_.finish.cancel();
    if (context_.finished) std::exchange(context_.finished, nullptr)();
  };
  const auto* const leaving = std::get_if<Leaving>(&context_.state);
  if (leaving != nullptr && leaving->has_last_words() && !context_.election->leads()) return;  // Leaving has a limit
  RendezvousServer* const rendezvous = context_.servers.rendezvous();
  context_.finish = context_.loop.after(rendezvous != nullptr ? limit : Duration::zero(), done);
  if (rendezvous == nullptr) return;
  rendezvous->on_over([this, outcome = text.substr(0, kMostReportBytes), done] {
    context_.election ? context_.election->resign(outcome, done) : done();
  });
}

std::string Job::who_is_there() const {
  const RendezvousServer* const rendezvous = context_.servers.rendezvous();
  return rendezvous != nullptr && !rendezvous->redirect() && joined() ? rendezvous->who_is_there() : std::string();
}

bool Job::may_drop_out() const { return context_.servers.rendezvous() == nullptr || context_.election != nullptr; }

bool Job::has_successors() const {
  return context_.servers.rendezvous() != nullptr && !context_.election && !context_.is_over() &&
         context_.part.can_fail_over() && context_.part.membership->num_nodes > 1;
}

ClockOffset Job::clock_offset() const {
  if (context_.part.lost_clock) return *context_.part.lost_clock;
  return context_.link ? context_.link->clock_offset() : ClockOffset();
}

}  // namespace lrun::launcher
