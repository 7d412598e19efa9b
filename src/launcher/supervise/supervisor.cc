// In: the ends of workers, and events from outside (signals, limits, other nodes). Out: signals to workers, calls of a
// RunObserver, the outcome of the attempt. decide() in stop/policy makes the decisions; Attempt owns a Supervisor.
#include "supervise/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "process/descendants.h"
#include "verdict/judge.h"

namespace lrun::launcher {
namespace {

/// How long the kernel may take to end a process that has much memory to give back.
constexpr Duration kKillLimit(5000);
/// A worker that fails within this time may have failed before the others had begun.
constexpr Duration kStarting(1000);

/// Those that ended well a moment before lrun got TERM had got it, too.
void count_as_stopped(std::vector<FailureRecord>& records) {
  constexpr std::int64_t kMomentNs = 1'000'000'000;
  const std::int64_t since = nanoseconds(steady_now()) - kMomentNs;
  for (FailureRecord& record : records) {
    if (!record.success() || record.stopped_by_lrun() || record.steady_ns < since) continue;
    record.stop_signal = SIGTERM;
    record.cause = Cause::kStoppedByLrun;
  }
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, WorkerGroup& group, const NodePlan& node, LogRouter& logs,
                       RunObserver& observer, Facts facts)
    : loop_(loop),
      group_(group),
      logs_(logs),
      observer_(observer),
      facts_(std::move(facts)),
      recorder_(node, logs, facts_.records),
      grace_(loop_),
      settle_(loop_),
      next_start_(loop_),
      backoff_(loop_) {
  state_.grace = facts_.grace;
  state_.settle = facts_.settle;
  state_.settle_for_victims = facts_.settle_for_victims;
  state_.settle_at_start = facts_.settle_at_start;
  state_.looks = facts_.look != nullptr;
}

void Supervisor::begin(std::function<void()> finished, GradualStart start) {
  finished_ = std::move(finished);
  start_ = std::move(start);
  state_.running = static_cast<int>(group_.workers().size()) + start_.left;
  group_.on_ended([this](Worker& worker, const ExitStatus& status) { worker_ended(worker, status); });
  if (start_.left == 0) return;
  const auto begin_start = [this] {
    if (start_.left > 0) next_start_.arm(Duration::zero(), [this] { start_more(); });
    if (state_.suspended) next_start_.pause();
  };
  start_.when_ready ? start_.when_ready(begin_start) : begin_start();
}

/// A timer of zero: events that are ready now have their turn before the next workers.
void Supervisor::start_more() {
  const std::optional<int> left = start_.more();
  if (!left) return;
  start_.left = *left;
  if (start_.left == 0) return start_.over();
  next_start_.arm(Duration::zero(), [this] { start_more(); });
}

/// No worker is started in a run that has begun to stop.
void Supervisor::call_off_start() {
  if (start_.left == 0 || state_.phase == SupervisionState::Phase::kRunning) return;
  next_start_.cancel();
  pending_.emplace_back(StartCalledOff{std::exchange(start_.left, 0)});
  start_.over();
}

void Supervisor::back_off(Duration delay, std::function<void()> again, std::function<void()> finished) {
  again_ = std::move(again);
  finished_ = std::move(finished);
  handle(RestartPlanned{delay});
}

/// Carrying an action out can cause events (a worker is seen to have ended), which would change the state under the
/// actions that are left. They wait until the whole decision is carried out.
void Supervisor::handle(const Event& event) {
  pending_.push_back(event);
  if (std::exchange(deciding_, true)) return;
  while (!pending_.empty()) {
    const Event next = std::move(pending_.front());
    pending_.pop_front();
    Decision decision = decide(state_, next);
    state_ = std::move(decision.state);
    for (const Action& action : decision.actions) {
      std::visit([this](const auto& one) { apply(one); }, action);
    }
    call_off_start();
  }
  deciding_ = false;
}

/// A worker that the guard, or the guard's death, has killed is not to be blamed. Its end may be seen before the death
/// of the guard is.
void Supervisor::note_guards_kill(const Worker& worker, const ExitStatus& status) {
  const bool was_killed = status.kind == ExitStatus::Kind::kSignaled && status.value == SIGKILL;
  if (!was_killed || facts_.guard == nullptr) return;
  const bool guard_died = facts_.guard->has_died();
  if (!guard_died && !facts_.guard->has_ended_workers()) return;
  recorder_.note_stop(worker, SIGKILL);
  if (guard_died) return handle(GuardDied{});
  handle(StoppedElsewhere{
      {.kind = RunEnd::Kind::kNodeLost,
       .who = fmt::format("the launcher of node {} was stopped for too long, and its workers were ended",
                          facts_.records.host)}});
}

void Supervisor::worker_ended(Worker& worker, const ExitStatus& status) {
  note_guards_kill(worker, status);
  // The rest of its group may still write, so its pipes stay open. Without such a rest its last lines are read now.
  if (!WorkerGroup::remains_linger(worker)) logs_.worker_ended(worker.local_rank);
  records_.push_back(recorder_.ended(worker, status));
  observer_.worker_ended(records_.back());
  // reap_adopted() stops at an ended worker, so orphans behind this one may still wait to be reaped.
  reap_adopted([this](pid_t pid) { return is_worker(pid); });
  const FailureRecord& record = records_.back();
  handle(WorkerEnded{status.success(), is_victim(record.cause), record.lifetime_ms < kStarting.count()});
}

bool Supervisor::gave_up() const {
  return std::any_of(records_.begin(), records_.end(),
                     [](const FailureRecord& record) { return record.ending == FailureRecord::Ending::kLost; });
}

/// An orphan may carry the number of a worker that was reaped long ago.
bool Supervisor::is_worker(pid_t pid) const {
  return std::any_of(group_.workers().begin(), group_.workers().end(),
                     [pid](const Worker& worker) { return worker.process.pid() == pid && !worker.process.status(); });
}

/// A worker that has ended by itself must be recorded as such before a signal counts as sent to it.
void Supervisor::mark_stopped(int signal_number) {
  group_.collect_ended();
  for (const Worker& worker : group_.workers()) {
    if (!worker.process.status()) recorder_.note_stop(worker, signal_number);
  }
}

/// Workers that ended in the same wake-up are recorded first: one of them may be the one to blame.
void Supervisor::apply(const Announce&) {
  group_.collect_ended();
  if (facts_.workers_get_term && state_.end.kind == RunEnd::Kind::kInterrupted && state_.end.signal_number == SIGTERM) {
    count_as_stopped(records_);
  }
  const Verdict so_far = judge(state_.end, records_, {}, group_.running() > 0);
  observer_.stopping(state_.end, so_far.culprit ? &*so_far.culprit : nullptr, {group_.running()});
}

void Supervisor::apply(const LookAtWorkers&) { looking_ = facts_.look(); }

void Supervisor::saw_workers(std::vector<RankPlace> places) {
  places_ = std::move(places);
  handle(LookedAtWorkers{});
}

void Supervisor::apply(const ArmSettle& action) {
  if (state_.end.kind == RunEnd::Kind::kWorkerFailed) observer_.settling(records_.back(), action.settle);
  settle_.arm(action.settle, [this] { handle(SettleExpired{}); });
}

void Supervisor::apply(const StopWorkers& action) {
  looking_.reset();
  mark_stopped(action.signal_number);
  if (action.whole_groups) {
    group_.stop_groups(action.signal_number);
  } else {
    group_.stop_leaders(action.signal_number);
  }
}

void Supervisor::apply(const PassOn& action) {
  recorder_.note_passed_on(action.signal_number);
  group_.signal_leaders(action.signal_number);
}

void Supervisor::apply(const ArmGrace& action) {
  grace_.arm(action.grace, [this] { handle(GraceExpired{}); });
}

void Supervisor::apply(const KillGroups&) {
  looking_.reset();
  mark_stopped(SIGKILL);
  if (group_.running() > 0) observer_.killing(group_.running());
  group_.signal_groups(SIGKILL);
  kill_limit_ = loop_.after(kKillLimit, [this] { handle(KillExpired{}); });
}

/// The kernel does not let these workers end. They get a record all the same, since the run ends without them.
void Supervisor::apply(const GiveUp&) {
  group_.give_up();
  for (const Worker& worker : group_.workers()) {
    if (worker.process.status()) continue;
    logs_.worker_ended(worker.local_rank);
    records_.push_back(recorder_.lost(worker));
    observer_.worker_ended(records_.back());
  }
}

void Supervisor::apply(const Suspend&) {
  grace_.pause();
  settle_.pause();
  backoff_.pause();
  next_start_.pause();
  group_.signal_groups(SIGSTOP);
  observer_.suspended();
}

void Supervisor::apply(const Resume&) {
  group_.signal_groups(SIGCONT);
  grace_.resume();
  settle_.resume();
  backoff_.resume();
  next_start_.resume();
  observer_.resumed();
}

void Supervisor::apply(const Finish&) {
  kill_limit_.cancel();
  looking_.reset();
  check_finished();
}

void Supervisor::apply(const ArmBackoff& action) {
  backoff_.arm(action.delay, [this] { handle(BackoffExpired{}); });
  if (state_.suspended) backoff_.pause();
}

void Supervisor::apply(const ConfirmStart&) {
  // Behind everything that is ready now: a signal that came meanwhile must find a run that can be ended.
  finish_ = loop_.after(Duration::zero(), [this] { start_again_when_confirmed(); });
}

void Supervisor::apply(const StartAgain&) { starts_again_ = true; }

void Supervisor::start_again_when_confirmed() {
  handle(StartConfirmed{});
  if (!std::exchange(starts_again_, false)) return;
  const auto again = std::exchange(again_, nullptr);
  finished_ = nullptr;  // children that end from now on do not belong to this attempt
  again();              // may destroy this supervisor
}

void Supervisor::check_finished() {
  const bool lingering = state_.phase == SupervisionState::Phase::kLingering;
  if (lingering || state_.phase == SupervisionState::Phase::kOver) finish_when_nothing_is_left();
}

/// Workers whose group had the rest of the grace kept their pipes open until now.
void Supervisor::end_remaining_output() {
  for (Worker& worker : group_.workers()) {
    if (std::exchange(worker.left_signal, 0) != 0) logs_.worker_ended(worker.local_rank);
  }
}

void Supervisor::finish_when_nothing_is_left() {
  const bool wait_for_remains = state_.phase == SupervisionState::Phase::kLingering;
  if (!finished_ || (wait_for_remains && group_.remains_linger())) return;
  end_remaining_output();
  if (!finished_ || !logs_.drained()) return;
  // By the loop, not from here: the caller may be the control socket or the log router.
  finish_ = loop_.after(Duration::zero(), std::exchange(finished_, nullptr));
}

}  // namespace lrun::launcher
