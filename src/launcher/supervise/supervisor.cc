#include "supervise/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/nanoseconds.h"
#include "base/small_file.h"
#include "process/descendants.h"
#include "verdict/judge.h"
#include "verdict/machine_evidence.h"

namespace lrun::launcher {
namespace {

// What the kernel needs to end a process that it can end, with room for one that has much memory to give back.
constexpr Duration kKillLimit(5000);
/// A failure within this time may have come before the others had begun.
constexpr Duration kStarting(1000);

std::string device_name(const NodePlan& node, int local_rank) {
  const auto worker = std::find_if(node.workers.begin(), node.workers.end(),
                                   [local_rank](const WorkerPlan& one) { return one.local_rank == local_rank; });
  if (worker == node.workers.end() || worker->devices.size() != 1) return {};
  const DeviceId& device = worker->devices.front();
  if (device.kind == DeviceId::Kind::kTpu) return fmt::format("TPU chip {}", device.id);
  return device.kind == DeviceId::Kind::kGpu ? fmt::format("GPU {}", device.id) : std::string();
}

/// Where the worker was told to leave its account. A file that is none is as good as none.
void read_error_file(const std::filesystem::path& folder, EndFacts& facts, int local_rank) {
  if (folder.empty()) return;
  const std::filesystem::path file = folder / std::to_string(local_rank) / "error.json";
  facts.error_file = parse_error_file(read_small_file(file, ErrorFile::kMostBytes).value_or(""));
  facts.error_file_path = file.string();
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, WorkerGroup& group, const NodePlan& node, LogRouter& logs,
                       RunObserver& observer, Facts facts)
    : loop_(loop),
      group_(group),
      node_(node),
      logs_(logs),
      observer_(observer),
      facts_(std::move(facts)),
      memory_(facts_.cgroup),
      grace_(loop_),
      settle_(loop_),
      next_start_(loop_),
      backoff_(loop_) {
  state_.grace = facts_.grace;
  state_.settle = facts_.settle;
  state_.settle_for_victims = facts_.settle_for_victims;
  state_.settle_at_start = facts_.settle_at_start;
  state_.looks = facts_.look != nullptr;
  note_started();
}

void Supervisor::begin(std::function<void()> finished, GradualStart start) {
  finished_ = std::move(finished);
  start_ = std::move(start);
  state_.running = static_cast<int>(group_.workers().size()) + start_.left;
  group_.on_ended([this](Worker& worker, const ExitStatus& status) { worker_ended(worker, status); });
  if (start_.left > 0) next_start_.arm(Duration::zero(), [this] { start_more(); });
}

void Supervisor::note_started() {
  for (std::size_t i = stop_signals_.size(); i < group_.workers().size(); ++i) {
    pids_[group_.workers()[i].process.pid()] = i;
    stop_signals_.push_back(0);
  }
}

/// Events that are ready now have their turn before the next workers.
void Supervisor::start_more() {
  const std::optional<int> left = start_.more();
  if (!left) return;
  note_started();
  start_.left = *left;
  if (start_.left == 0) return start_.over();
  next_start_.arm(Duration::zero(), [this] { start_more(); });
}

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

/// A worker that the guard, or the guard's death, has killed is not to be blamed. Its end may be seen before the
/// reason.
void Supervisor::note_guards_kill(const Worker& worker, const ExitStatus& status) {
  const bool was_killed = status.kind == ExitStatus::Kind::kSignaled && status.value == SIGKILL;
  if (!was_killed || facts_.guard == nullptr) return;
  const bool guard_died = facts_.guard->has_died();
  if (!guard_died && !facts_.guard->has_ended_workers()) return;
  stop_signals_[pids_.at(worker.process.pid())] = SIGKILL;
  if (guard_died) return handle(GuardDied{});
  handle(StoppedElsewhere{
      {.kind = RunEnd::Kind::kNodeLost,
       .who = fmt::format("the launcher of node {} stood still too long, and its workers were ended", facts_.host)}});
}

void Supervisor::worker_ended(Worker& worker, const ExitStatus& status) {
  note_guards_kill(worker, status);
  // The pipes of what may still save something stay open; of the others the last lines are wanted now.
  if (!WorkerGroup::remains_linger(worker)) logs_.worker_ended(worker.local_rank);
  records_.push_back(make_record(worker, status));
  observer_.worker_ended(records_.back());
  // The worker may have hidden ended orphans, whose own signals were read before: they count as left no longer.
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
  const auto found = pids_.find(pid);
  if (found == pids_.end() || found->second >= group_.workers().size()) return false;
  return !group_.workers()[found->second].process.status();
}

FailureRecord Supervisor::begin_record(const Worker& worker) const {
  const SteadyTime now = std::chrono::steady_clock::now();
  FailureRecord record;
  record.node = facts_.host;
  record.node_rank = node_.node_rank;
  record.rank = worker.rank;
  record.local_rank = worker.local_rank;
  record.pid = worker.process.pid();
  record.attempt = facts_.attempt;
  record.device = device_name(node_, worker.local_rank);
  record.steady_ns = nanoseconds(now);
  record.wall_ns = nanoseconds(std::chrono::system_clock::now());
  record.lifetime_ms = std::chrono::duration_cast<Duration>(now - worker.started).count();
  record.stop_signal = stop_signals_[pids_.at(record.pid)];
  return record;
}

FailureRecord Supervisor::make_record(const Worker& worker, const ExitStatus& status) {
  FailureRecord record = begin_record(worker);
  record.set_status(status);
  EndFacts facts = end_facts(record);
  facts.cpu_limit_seconds = worker.cpu_limit_seconds;
  explain(record, facts);
  return record;
}

/// What the machine and the worker's last lines add to its status. The kernel is asked only about the ends that it may
/// have caused.
EndFacts Supervisor::end_facts(const FailureRecord& record) {
  EndFacts facts;
  if (record.success()) return facts;
  std::size_t later_bytes = 0;
  for (TailLine& line : logs_.tail(record.local_rank)) {
    later_bytes = line.stream == LogStream::kErr ? 0 : later_bytes + line.text.size() + 1;
    if (line.stream == LogStream::kErr) facts.error_lines.push_back(line.text);
    facts.last_lines.push_back(std::move(line.text));
  }
  constexpr std::size_t kBufferBytes = 8192;  // of stdout, in Python and in C
  if (later_bytes > kBufferBytes) facts.error_lines.clear();
  read_error_file(facts_.error_folder, facts, record.local_rank);
  facts.passed_on = record.ending == FailureRecord::Ending::kSignaled && passed_on_.contains(record.value);
  add_machine_evidence(record, memory_, facts);
  if (facts_.workers_write_files) add_full_folder(record, facts_.error_folder.string(), facts);
  return facts;
}

/// Those that ended by themselves must be recorded as such before a signal is counted as sent to them.
void Supervisor::mark_stopped(int signal_number) {
  group_.collect_ended();
  for (const Worker& worker : group_.workers()) {
    if (!worker.process.status()) stop_signals_[pids_.at(worker.process.pid())] = signal_number;
  }
}

/// Whoever else ended in the same wake-up may be the one to blame, so those are heard first.
void Supervisor::apply(const Announce&) {
  group_.collect_ended();
  const Verdict so_far = judge(state_.end, records_, {}, group_.running() > 0);
  observer_.stopping(state_.end, so_far.culprit ? &*so_far.culprit : nullptr, group_.running());
}

void Supervisor::apply(const LookAtWorkers&) { looking_ = facts_.look(); }

void Supervisor::saw_workers(std::vector<RankPlace> places) {
  places_ = std::move(places);
  handle(LookedAtWorkers{});
}

void Supervisor::apply(const ArmSettle& action) {
  observer_.settling(records_.back(), action.settle);
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
  passed_on_.insert(action.signal_number);
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

void Supervisor::apply(const GiveUp&) {
  group_.give_up();
  for (const Worker& worker : group_.workers()) {
    if (worker.process.status()) continue;
    FailureRecord record = begin_record(worker);
    record.ending = FailureRecord::Ending::kLost;
    logs_.worker_ended(worker.local_rank);
    explain(record, end_facts(record));
    records_.push_back(std::move(record));
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
  look_again();
}

void Supervisor::apply(const ArmBackoff& action) {
  backoff_.arm(action.delay, [this] { handle(BackoffExpired{}); });
  if (state_.suspended) backoff_.pause();
}

void Supervisor::apply(const ConfirmStart&) {
  finish_ = loop_.after(Duration::zero(), [this] { start_again_when_confirmed(); });  // behind all that is ready now
}

void Supervisor::apply(const StartAgain&) { starts_again_ = true; }

void Supervisor::start_again_when_confirmed() {
  handle(StartConfirmed{});
  if (!std::exchange(starts_again_, false)) return;
  const auto again = std::exchange(again_, nullptr);
  finished_ = nullptr;  // children that end while other nodes are waited for are none of this attempt
  again();              // the last of this supervisor
}

void Supervisor::look_again() {
  const bool lingering = state_.phase == SupervisionState::Phase::kLingering;
  if (lingering || state_.phase == SupervisionState::Phase::kOver) finish_when_nothing_is_left();
}

/// Those whose group had the rest of the grace; nothing to do for the others.
void Supervisor::take_over_output() {
  for (Worker& worker : group_.workers()) {
    if (std::exchange(worker.left_signal, 0) != 0) logs_.worker_ended(worker.local_rank);
  }
}

void Supervisor::finish_when_nothing_is_left() {
  const bool wait_for_remains = state_.phase == SupervisionState::Phase::kLingering;
  if (!finished_ || (wait_for_remains && group_.remains_linger())) return;
  take_over_output();
  if (!finished_ || !logs_.drained()) return;
  // Not from inside the caller's frame: it may be the control socket, or logs that are being written.
  finish_ = loop_.after(Duration::zero(), std::exchange(finished_, nullptr));
}

}  // namespace lrun::launcher
