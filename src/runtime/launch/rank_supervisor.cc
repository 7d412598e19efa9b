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
#include "verdict/machine_evidence.h"

namespace lrun::detail {
namespace {

constexpr Duration kKillLimit(5000);
constexpr Duration kSettleForVictims(250);  // the rank whose death they tell of may end a moment later

}  // namespace

RankSupervisor::RankSupervisor(RankOrder order, const LaunchBoard& board, pid_t parent)
    : order_(std::move(order)), board_(board), parent_(parent) {
  for (WorkerCommand& rank : order_.ranks) {
    errors_.push_back(std::make_unique<RankErrors>(relay_));
    rank.standard_error = errors_.back()->rank_end();
  }
  relay_.on_room([this] {
    for (const auto& errors : errors_) errors->resume();
    if (group_.running() == 0) all_ended();
  });
  watch_signals();
}

LaunchEnd RankSupervisor::run() {
  group_.on_ended([this](const Worker& worker, const ExitStatus& status) { on_ended(worker, status); });
  start();
  if (group_.running() > 0) loop_.run();
  end_descendants();
  for (const auto& errors : errors_) errors->drain();
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
                [this] { stop({.kind = RunEnd::Kind::kTimedOut, .limit_ms = order_.timeout.count()}, SIGTERM); });
}

void RankSupervisor::watch_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGCHLD, forwarded_signal()}) {
    ::sigaddset(&set, number);
  }
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
  if (signal_number == SIGCHLD) {
    group_.child_signalled();
    reap_adopted([this](pid_t pid) {
      return std::any_of(group_.workers().begin(), group_.workers().end(), [pid](const Worker& worker) {
        return worker.process.pid() == pid && !worker.process.status();
      });
    });
    return;
  }
  if (signal_number == forwarded_signal()) {
    if (::getppid() == parent_) return;  // anybody can send it
    result_.end.kind = RunEnd::Kind::kGuardDied;
    stopping_ = true;
    return group_.running() == 0 ? loop_.stop() : kill();
  }
  if (signal_number == SIGTSTP) return suspend();
  if (signal_number == SIGCONT) return resume();
  if (group_.running() == 0) return loop_.stop();  // only their last words are waited for
  if (result_.end.kind == RunEnd::Kind::kInterrupted) return kill();
  if (stopping_) return;
  stop({.kind = RunEnd::Kind::kInterrupted, .signal_number = signal_number}, signal_number);
}

/// The program is about to stop. What the ranks moved into sessions of their own goes on, as below the launcher.
void RankSupervisor::suspend() {
  if (suspended_ || signal_sent_ == SIGKILL) return;
  suspended_ = true;
  deadline_.pause();
  patience_.pause();
  group_.signal_groups(SIGSTOP);
}

void RankSupervisor::resume() {
  if (!suspended_) return;
  suspended_ = false;
  group_.signal_groups(SIGCONT);
  deadline_.resume();
  patience_.resume();
}

void RankSupervisor::on_ended(const Worker& worker, const ExitStatus& status) {
  errors_[static_cast<std::size_t>(worker.local_rank)]->drain();
  const FailureRecord record = record_of(worker, status);
  result_.records.push_back(record);
  if (!stopping_) react_to(record);
  if (group_.running() == 0) all_ended();
}

/// What they said last may have to wait for a reader of stderr: as long as a rank that is told to end may take.
void RankSupervisor::all_ended() {
  deadline_.cancel();
  patience_.cancel();
  if (!relay_.blocked() || signal_sent_ == SIGKILL) return loop_.stop();
  patience_.arm(order_.grace, [this] { loop_.stop(); });
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

/// What the function threw, what the rank printed last, and what the machine knows about a signal.
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

/// One that failed, or left too early, ends all. A victim is given a moment to be no longer the first.
void RankSupervisor::react_to(const FailureRecord& record) {
  const LaunchBoard::Stage stage = board_.stage(record.local_rank);
  if (record.success()) {
    if (stage == LaunchBoard::Stage::kDone) return;
    result_.unfinished = LaunchEnd::Unfinished{record.rank, stage == LaunchBoard::Stage::kReached};
    return stop({}, SIGTERM);
  }
  const auto end_all = [this] { stop({.kind = RunEnd::Kind::kWorkerFailed}, SIGTERM); };
  result_.end.kind = RunEnd::Kind::kWorkerFailed;
  if (!is_victim(record.cause)) return end_all();
  if (!patience_.armed()) patience_.arm(kSettleForVictims, end_all);
}

void RankSupervisor::stop(const RunEnd& end, int signal_number) {
  if (stopping_) return;
  stopping_ = true;
  result_.end = end;
  deadline_.cancel();
  resume();                // a stopped process cannot obey
  group_.collect_ended();  // those that ended by themselves are not stopped by us
  signal_sent_ = signal_number;
  group_.stop_leaders(signal_number);
  patience_.arm(order_.grace, [this] { kill(); });
}

void RankSupervisor::kill() {
  if (signal_sent_ == SIGKILL) return;
  group_.collect_ended();
  signal_sent_ = SIGKILL;
  group_.stop_groups(SIGKILL);
  patience_.arm(kKillLimit, [this] { give_up(); });
}

/// The kernel holds them: nobody can end them, and they are told of as such.
void RankSupervisor::give_up() {
  for (const Worker& worker : group_.workers()) {
    if (worker.process.status()) continue;
    FailureRecord record = record_of(worker, {});
    record.ending = FailureRecord::Ending::kLost;
    record.cause = Cause::kLost;
    result_.records.push_back(std::move(record));
  }
  group_.give_up();
  loop_.stop();
}

/// What the ranks left behind, with sessions of their own or not.
void RankSupervisor::end_descendants() {
  if (signal_sent_ == SIGKILL && group_.running() > 0) return;
  (void)end_all_descendants(kKillLimit);
}

}  // namespace lrun::detail
