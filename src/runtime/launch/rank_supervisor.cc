// In: the ranks to start, signals, ends of ranks. Out: the outcome of the launch. Called by supervised_launch in the
// process that is forked for it; the stopping procedure itself is stop/policy.
#include "runtime/launch/rank_supervisor.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "base/clock.h"
#include "base/own_signals.h"
#include "process/descendants.h"
#include "process/signal_set.h"
#include "verdict/machine_evidence.h"

namespace lrun::detail {
namespace {

constexpr Duration kKillLimit(5000);
constexpr Duration kSettleForVictims(250);  // the culprit may end a moment after the ranks that report its death

}  // namespace

RankSupervisor::RankSupervisor(RankOrder order, const LaunchBoard& board, pid_t parent)
    : order_(std::move(order)), board_(board), parent_(parent) {
  state_.running = static_cast<int>(order_.ranks.size());
  state_.grace = order_.grace;
  state_.settle_for_victims = kSettleForVictims;
  for (WorkerCommand& rank : order_.ranks) {
    errors_.push_back(std::make_unique<RankErrors>(relay_));
    rank.standard_error = errors_.back()->rank_end();
  }
  relay_.on_room([this] {
    for (const auto& errors : errors_) errors->resume();
    finish_when_nothing_is_left();
  });
  watch_signals();
}

LaunchEnd RankSupervisor::run() {
  group_.on_ended([this](const Worker& worker, const ExitStatus& status) { on_ended(worker, status); });
  start();
  if (group_.running() > 0) loop_.run();
  end_descendants();
  for (const auto& errors : errors_) errors->drain();
  // A rank that left too early is the cause, whatever the others did when they were stopped for it.
  if (!result_.unfinished && state_.end.kind != RunEnd::Kind::kSucceeded) result_.end = state_.end;
  return std::move(result_);
}

void RankSupervisor::start() {
  const auto failure = group_.start(loop_, order_.group, order_.ranks, SpawnDefaults::of_this_process());
  if (failure) {
    FailureRecord record;
    record.node = order_.host;
    record.node_rank = order_.node_rank;
    record.local_rank = failure->local_rank;
    record.rank = order_.ranks[static_cast<std::size_t>(failure->local_rank)].rank;
    record.ending = FailureRecord::Ending::kExecFailed;
    record.value = failure->error_number;
    explain(record, {});
    result_.end.kind = RunEnd::Kind::kStartFailed;
    result_.records.push_back(std::move(record));
    return;
  }
  for (const auto& errors : errors_) errors->begin(loop_);
  if (order_.timeout == Duration::zero()) return;
  deadline_.arm(order_.timeout,
                [this] { handle(TimeIsOver{{.kind = RunEnd::Kind::kTimedOut, .limit_ms = order_.timeout.count()}}); });
}

void RankSupervisor::watch_signals() {
  const sigset_t set = signal_set({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGCHLD, forwarded_signal()});
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) throw std::system_error(errno, std::generic_category(), "signalfd");
  signal_watch_ = loop_.on_readable(signals_.get(), [this] { read_signals(); });
}

void RankSupervisor::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    on_signal(static_cast<int>(info.ssi_signo));
  }
}

void RankSupervisor::on_signal(int signal_number) {
  if (signal_number == SIGCHLD) return reap_children();
  if (signal_number != forwarded_signal()) {
    handle(SignalArrived{signal_number});
  } else if (::getppid() != parent_) {  // any process can send this signal: it counts only after the parent's death
    handle(GuardDied{});
  }
  // No rank is left and the supervisor only waits for a reader of stderr: any signal that is not about a pause ends
  // that.
  const bool is_pause = signal_number == SIGTSTP || signal_number == SIGCONT;
  if (!is_pause && state_.phase == SupervisionState::Phase::kOver) loop_.stop();
}

void RankSupervisor::reap_children() {
  group_.child_signalled();
  reap_adopted([this](pid_t pid) {
    return std::any_of(group_.workers().begin(), group_.workers().end(),
                       [pid](const Worker& worker) { return worker.process.pid() == pid && !worker.process.status(); });
  });
  finish_when_nothing_is_left();  // an orphan of a rank may have ended
}

/// A rank that leaves with 0 before its function has returned ends the launch, as a failure does.
void RankSupervisor::on_ended(const Worker& worker, const ExitStatus& status) {
  using Phase = SupervisionState::Phase;
  errors_[static_cast<std::size_t>(worker.local_rank)]->drain();
  const FailureRecord record = record_of(worker, status);
  result_.records.push_back(record);
  const LaunchBoard::Stage stage = board_.stage(record.local_rank);
  const bool works = state_.phase == Phase::kRunning || state_.phase == Phase::kSettling;
  const bool left_early = works && record.success() && stage != LaunchBoard::Stage::kDone;
  if (left_early && !result_.unfinished) {
    result_.unfinished = LaunchEnd::Unfinished{record.rank, stage == LaunchBoard::Stage::kReached};
  }
  handle(WorkerEnded{.success = record.success(), .victim = is_victim(record.cause)});
  if (left_early) handle(StopRequested{});
}

FailureRecord RankSupervisor::record_of(const Worker& worker, const ExitStatus& status) {
  const SteadyTime now = std::chrono::steady_clock::now();
  FailureRecord record;
  record.node = order_.host;
  record.node_rank = order_.node_rank;
  record.rank = worker.rank;
  record.local_rank = worker.local_rank;
  record.pid = worker.process.pid();
  record.steady_ns = nanoseconds(now);
  record.wall_ns = nanoseconds(std::chrono::system_clock::now());
  record.lifetime_ms = std::chrono::duration_cast<Duration>(now - worker.started).count();
  record.stop_signal = signal_sent_;
  record.set_status(status);
  EndFacts facts = facts_of(record);
  facts.cpu_limit_seconds = worker.cpu_limit_seconds;
  explain(record, facts);
  return record;
}

/// The rank's exception, its last lines, and the machine's knowledge about a signal.
EndFacts RankSupervisor::facts_of(const FailureRecord& record) {
  EndFacts facts;
  if (record.success()) return facts;
  facts.last_lines = errors_[static_cast<std::size_t>(record.local_rank)]->last_lines();
  facts.error_lines = facts.last_lines;
  if (board_.stage(record.local_rank) == LaunchBoard::Stage::kThrew) {
    facts.error_file = ErrorFile{.message = board_.error(record.local_rank)};
  }
  add_machine_evidence(record, memory_, facts);
  return facts;
}

void RankSupervisor::handle(const Event& event) {
  pending_.push_back(event);
  if (std::exchange(deciding_, true)) return;
  while (!pending_.empty()) {
    const Event next = std::move(pending_.front());
    pending_.pop_front();
    Decision decision = decide(state_, next);
    state_ = std::move(decision.state);
    for (const Action& action : decision.actions) std::visit([this](const auto& one) { apply(one); }, action);
  }
  deciding_ = false;
}

/// The ends of all ranks that ended in the same wake-up are read before any rank is stopped: one of them may be the
/// culprit.
void RankSupervisor::apply(const Announce&) { group_.collect_ended(); }

void RankSupervisor::apply(const ArmSettle& action) {
  settle_.arm(action.settle, [this] { handle(SettleExpired{}); });
}

void RankSupervisor::apply(const StopWorkers& action) {
  group_.collect_ended();
  signal_sent_ = action.signal_number;
  action.whole_groups ? group_.stop_groups(action.signal_number) : group_.stop_leaders(action.signal_number);
}

void RankSupervisor::apply(const ArmGrace& action) {
  grace_.arm(action.grace, [this] { handle(GraceExpired{}); });
}

void RankSupervisor::apply(const KillGroups&) {
  group_.collect_ended();
  signal_sent_ = SIGKILL;
  group_.signal_groups(SIGKILL);
  kill_limit_ = loop_.after(kKillLimit, [this] { handle(KillExpired{}); });
}

/// The kernel holds these ranks, and no signal can end them.
void RankSupervisor::apply(const GiveUp&) {
  for (const Worker& worker : group_.workers()) {
    if (worker.process.status()) continue;
    FailureRecord record = record_of(worker, {});
    record.ending = FailureRecord::Ending::kLost;
    record.cause = Cause::kLost;
    result_.records.push_back(std::move(record));
  }
  group_.give_up();
}

/// The program is about to stop. Processes that the ranks moved into sessions of their own go on, as below the
/// launcher.
void RankSupervisor::apply(const Suspend&) {
  for (PausableTimer* clock : {&deadline_, &settle_, &grace_, &last_words_}) clock->pause();
  group_.signal_groups(SIGSTOP);
}

void RankSupervisor::apply(const Resume&) {
  group_.signal_groups(SIGCONT);
  for (PausableTimer* clock : {&deadline_, &settle_, &grace_, &last_words_}) clock->resume();
}

void RankSupervisor::apply(const Finish&) {
  kill_limit_.cancel();
  finish_when_nothing_is_left();
}

/// The other processes of the ranks' process groups have the rest of the grace period. The ranks' last output may have
/// to wait for a reader of stderr: for as long as a rank may take to end.
void RankSupervisor::finish_when_nothing_is_left() {
  using Phase = SupervisionState::Phase;
  const bool lingers = state_.phase == Phase::kLingering;
  if (!lingers && state_.phase != Phase::kOver) return;
  if (lingers && group_.remains_linger()) return;
  if (!relay_.blocked() || signal_sent_ == SIGKILL) return loop_.stop();
  if (!last_words_.armed()) last_words_.arm(order_.grace, [this] { loop_.stop(); });
}

/// Orphans of the ranks, in whatever session.
void RankSupervisor::end_descendants() {
  if (signal_sent_ == SIGKILL && group_.running() > 0) return;
  (void)end_all_descendants(kKillLimit);
}

}  // namespace lrun::detail
