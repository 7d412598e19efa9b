// In: a plan, and requests for the end of the run (signals, limits, other nodes). Out: attempts that run one after the
// other, and at the end the result of the run. NodeLauncher owns one.
#include "run/attempt_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/nearest.h"
#include "base/shortened.h"
#include "logs/terminal_text.h"
#include "plan/horovod_environment.h"
#include "plan/setting.h"
#include "rendezvous/rank_assignment.h"
#include "report/restart_text.h"
#include "report/stack_text.h"
#include "run/attempt_status.h"
#include "run/clean_up.h"
#include "run/preload.h"

namespace lrun::launcher {
namespace {

/// Nodes of one job end a moment apart: so short a wait is not worth a line.
constexpr Duration kQuietWait(2000);
constexpr std::size_t kMostNodesNamed = Membership::kMostNamedNodes - 1;
// Not at once: folders for eight workers cost half as much as starting them, and an interpreter that could write an
// error file takes longer than this to start. Old runs are removed then, too.
constexpr Duration kHouseworkDelay(10);
// A file server that is busy may need it for some ten thousand files. The end of the run does not wait for it.
constexpr Duration kCheckpointLimit(30'000);
constexpr Duration kBriefCheckpointLimit(2'000);  // where nothing depends on it

std::string waiting_text(const Membership& membership, bool of_ranks) {
  std::vector<std::string> others;
  for (std::size_t rank = 0; rank < membership.first_names.size(); ++rank) {
    if (static_cast<int>(rank) == membership.self.node_rank) continue;
    others.push_back(fmt::format("'{}' ({} {})", membership.first_names[rank], of_ranks ? "rank" : "node rank", rank));
  }
  others.resize(static_cast<std::size_t>(membership.num_nodes - 1));  // only the first have names
  const std::string names = join_first(others, kMostNodesNamed);
  return of_ranks
             ? fmt::format("the worker of rank {} has ended; waiting for those of {}", membership.self.node_rank, names)
             : "the workers of this node have ended; waiting for those of " + names;
}

/// The path of a folder that holds something; empty: it does not, or there is none. (Memory keeps nobody waiting.)
std::string path_in_use(const MemoryFolder& folder) {
  std::error_code error;
  if (!folder || std::filesystem::is_empty(folder.path(), error) || error) return {};
  return folder.path();
}

/// When liblrun last said that a checkpoint is written, in nanoseconds of the wall clock; 0: it has not.
std::int64_t told_checkpoint_ns(const Attempt& attempt) {
  const std::int64_t now = nanoseconds(steady_now());
  std::int64_t newest = 0;
  const std::size_t workers = attempt.processes().size();
  for (std::size_t i = 0; i < workers; ++i) {
    const std::int64_t told = attempt.progress(i).checkpoint_steady_ns;  // workers may write anything there
    if (told > 0 && told <= now) newest = std::max(newest, told);
  }
  return newest == 0 ? 0 : nanoseconds(std::chrono::system_clock::now()) - (now - newest);
}

/// The record of a worker that could not be started.
FailureRecord record_of(const StartFailure& failure, const NodePlan& node, int attempt) {
  FailureRecord record;
  record.node = node.name;
  for (const WorkerPlan& worker : node.workers) {
    if (worker.local_rank == failure.local_rank) record.rank = worker.rank;
  }
  record.local_rank = failure.local_rank;
  record.ending = FailureRecord::Ending::kExecFailed;
  record.value = failure.error_number;
  record.cause = Cause::kExecFailed;
  record.attempt = attempt;
  return record;
}

/// The failure as an exception, where the machine lacks processes or descriptors.
std::system_error error_of(const StartFailure& failure, const NodePlan& node) {
  if (failure.refusal) return *failure.refusal;
  return {failure.error_number, std::generic_category(),
          fmt::format("cannot start worker {} of {}", failure.local_rank, node.local_world_size())};
}

std::string no_further_attempt(const std::system_error& why) {
  return std::string("no further attempt can start: ") + why.what();
}

/// The workers are being stopped for a reason that came from another node and after which the job goes on.
bool stops_for_others(const SupervisionState& state) {
  return state.phase != SupervisionState::Phase::kBackingOff && !state.end.is_ours() && state.end.may_go_on();
}

/// A notice never does, nor does the SIGTERM that a machine sends at its end.
bool may_hurry(const RunEnd& first, const RunEnd& second) {
  if (second.kind == RunEnd::Kind::kNotice) return false;
  return first.kind != RunEnd::Kind::kNotice || second.signal_number != SIGTERM;
}

/// Of the attempt that begins.
int number_of_next(const JobObserver* job, const Restarts& restarts) {
  return job != nullptr ? job->membership().attempt : restarts.last().history.used;
}

/// Only the run itself shows whether the program uses liblrun, since a shell script may start Python. All nodes run the
/// same program, so the first one warns.
void warn_without_liblrun(const LaunchPlan& plan, const Attempt& attempt, MessageSink& sink) {
  const bool is_first = attempt.membership().self.node_rank == 0;
  if (!is_first || !plan.watches_for_liblrun || attempt.steps() > 0) return;
  sink.message_of_job(
      Severity::kWarning,
      fmt::format("'{}' is carried out by liblrun, and no step of it was seen: the program may have trained {}; with "
                  "'--liblrun' nobody looks",
                  as_written(plan.strategy), facts_of(plan.strategy.value).without_liblrun));
}

/// A round begins.
void enter(const AttemptLoop::Surroundings& run, const Membership& membership) {
  run.store.enter(membership);
  if (run.copies != nullptr) run.copies->enter(membership);
}

/// Children that live on between two attempts.
std::vector<pid_t> helpers_of(const AttemptLoop::Surroundings& run) {
  std::vector<pid_t> helpers;
  if (run.fork_server != nullptr) helpers.push_back(run.fork_server->pid());
  if (run.copies != nullptr) helpers.push_back(run.copies->pid());
  if (run.notice != nullptr) helpers.push_back(run.notice->pid());
  return helpers;
}

void warn_of_program_left(const AttemptLoop::Surroundings& run, const Attempt& attempt) {
  if (attempt.membership().self.node_rank != 0) return;  // the first node speaks for all
  const std::string command = program_left_behind(run.plan.argv, helpers_of(run));
  if (command.empty()) return;
  run.sink.message_of_job(
      Severity::kWarning,
      fmt::format(
          "a worker has ended and left '{}' running, which lrun ends: where that is the training, end the script "
          "with 'wait', or write 'exec' before it in place of '&'",
          terminal_safe(shortened(command, 80))));
}

bool shows_last_words_of(const FailureRecord& record, const LogRouter& logs, const ConsoleReporter& reporter) {
  if (record.success() || !record.error_file.empty() || record.evidence.empty()) return false;
  const auto shown_at = logs.shown_at(record.local_rank, record.evidence.back());
  return shown_at && reporter.is_on_screen(*shown_at);
}

/// Of this launcher's console, with those of `records` that are still seen there.
ScreenLines screen_here(const std::vector<FailureRecord>& records, const LogRouter& logs,
                        const ConsoleReporter& reporter) {
  ScreenLines screen{reporter.lines_since_stop()};
  for (const FailureRecord& record : records) {
    if (shows_last_words_of(record, logs, reporter)) screen.ranks_shown.push_back(record.rank);
  }
  return screen;
}

/// Programs may open more connections than one a worker, or close theirs; too few in all means that some ranks never
/// connected. Horovod's ranks keep no connection: the node with their rendezvous knows which ranks came.
std::vector<int> missing_ranks(const AttemptLoop::Surroundings& run, const Attempt& attempt) {
  if (is_horovod(run.plan)) return run.store.ranks_unseen_by_horovod(run.plan.world_size);
  if (run.store.has_seen(attempt.workers().size())) return {};
  return attempt.without_connection();
}

}  // namespace

AttemptLoop::AttemptLoop(const Surroundings& surroundings, JobMember* job, const Membership& membership, Events events)
    : run_(surroundings), events_(std::move(events)), restarts_(run_.plan) {
  if (job == nullptr) return;
  job_.emplace(*job, membership, *run_.plan.rendezvous, run_.reporter,
               JobObserver::Calls{
                   .stop = [this](const RunEnd& end, bool victim) { stop_early(end, victim); },
                   .over = [this](const Verdict& verdict, bool final) { attempt_judged(verdict, final); },
                   .begin = [this] { restart(); },
                   .note = [this](const std::string& text) { run_.job_sink.message_of_job(Severity::kNote, text); },
                   .warn = [this](const std::string& line) { run_.sink.warn(line); }});
  restarts_.take_history(membership.history);
  enter(run_, membership);
}

std::optional<FailureRecord> AttemptLoop::begin() {
  if (const std::optional<StartFailure> failure = begin_attempt()) {
    const FailureRecord record = record_of(*failure, node(), number_of_next(job(), restarts_));
    if (job_) job_->start_failed(record);
    if (!failure->exec_failed) throw error_of(*failure, node());
    return record;
  }
  events_.begun();
  go_on();
  return std::nullopt;
}

/// The last attempt has a verdict, so it is replaced only by an attempt that runs.
std::optional<StartFailure> AttemptLoop::begin_attempt() {
  Membership membership = job_ ? job_->membership() : sole_membership(run_.plan, run_.store.port());
  const int number = number_of_next(job(), restarts_);
  if (!job_) membership.attempt = membership.round = number;
  run_.record.make_folders(WorkerOutput::workers_write_files(run_.plan.output, node()));
  const Folder* const logs = run_.record.folders().logs();
  if (logs == nullptr) run_.logs.do_without_files();
  auto next = std::make_unique<Attempt>(attempt_surroundings(), std::move(membership),
                                        AttemptFiles(logs, restarts_.next_folder(number)));
  if (run_.plan.personality.failure == Personality::Failure::kTorchrunSummary) {
    // The summary is made of error files, also those of programs that end within milliseconds.
    next->files().make_rank_folders(node());
  }
  if (std::optional<StartFailure> failure = next->start()) return failure;
  if (attempt_) run_.logs.begin_attempt();
  next->supervise({.finished = [this] { attempt_over(); },
                   .started = [this] { attempt_started(); },
                   .start_failed =
                       [this](const StartFailure& failure) {
                         start_failure_ =
                             run_.loop.after(Duration::zero(), [this, failure] { start_failed_later(failure); });
                       },
                   .connected =
                       [this] {
                         if (standstill_) standstill_->begin();
                       }});
  previous_attempt_ = std::exchange(attempt_, std::move(next));
  if (run_.plan.hang_timeout.value > Duration::zero()) {
    hang_monitor_.emplace(run_.loop, run_.plan, *attempt_, run_.logs, run_.sink, run_.look);
  }
  const bool is_for_a_person = run_.plan.standard_input || run_.plan.setup.debug_rank.given();
  if (!is_for_a_person) {
    const bool reads_python = runs_python(run_.plan);
    standstill_.emplace(run_.loop, StandstillMonitor::Facts{.attempt = *attempt_,
                                                            .logs = run_.logs,
                                                            .sink = run_.job_sink,
                                                            .look = run_.look,
                                                            .launcher = run_.guard.pid(),
                                                            .reads_python = reads_python,
                                                            .ask = run_.ask_job});
    if (reads_python || job_) standstill_->begin();
  }
  return std::nullopt;
}

/// Does the work that can wait until the workers run.
void AttemptLoop::go_on() {
  if (!attempt_->is_starting()) attempt_started();
  attempt_->open_log_files();
  housework_ = run_.loop.after(kHouseworkDelay, [this] {
    attempt_->files().make_rank_folders(node());
    run_.record.prune_others(true);
    run_.guard.cgroup().remove_abandoned();
  });
}

Attempt::Surroundings AttemptLoop::attempt_surroundings() {
  RunObserver& observer = job_ ? static_cast<RunObserver&>(*job_) : run_.reporter;
  Attempt::Surroundings all{run_.plan, run_.start, run_.loop, run_.logs, observer, run_.guard};
  all.names_error_files = run_.record.folders().may_name_files();
  // torchrun's summary has no place for the workers' stacks.
  if (run_.plan.personality.failure != Personality::Failure::kTorchrunSummary) {
    all.look = [this] { return look_at_workers(); };
  }
  all.copies = run_.copies;
  if (run_.fork_server != nullptr) all.spawner = spawner_of(*run_.fork_server, run_.plan, run_.sink);
  return all;
}

std::shared_ptr<void> AttemptLoop::look_at_workers() {
  if (hang_monitor_) hang_monitor_->end_look();
  if (standstill_) standstill_->end_look();
  return run_.look(run_.loop, attempt_->running(), LookKind::kBrief, [this](const auto& samples, const std::string&) {
    // Each node watches its own workers, and the first that sees a hang stops the others, whose stacks are news, too.
    const RunEnd& end = attempt_->supervisor().state().end;
    if (samples && end.kind == RunEnd::Kind::kHang && !end.is_ours()) run_.sink.print_of_job(stack_text(*samples));
    attempt_->supervisor().saw_workers(places_of(fold_stacks(samples.value_or(std::vector<StackSample>()))));
  });
}

LauncherStacks AttemptLoop::standing_still() const {
  return standstill_ ? standstill_->standing_still() : LauncherStacks();
}

void AttemptLoop::attempt_started() {
  previous_attempt_.reset();
  run_.limits.begin_attempt([this] { return missing_ranks(run_, *attempt_); });
  run_.record.attempt_started(run_.plan, *attempt_);
  events_.started();
}

void AttemptLoop::start_failed_later(const StartFailure& failure) {
  const int number = attempt_->membership().attempt;
  hang_monitor_.reset();  // it watches the attempt that is no more
  standstill_.reset();
  const bool is_first = !previous_attempt_;
  if (!is_first) attempt_ = std::move(previous_attempt_);
  attempt_not_started(failure, number, is_first);
}

/// A reason against another attempt (a full disk, no processes left) must not hide how the last attempt ended.
void AttemptLoop::attempt_not_started(const StartFailure& failure, int number, bool is_first) {
  const FailureRecord record = record_of(failure, node(), number);
  if (job_) job_->start_failed(record);
  if (failure.exec_failed) return events_.start_failed(record);
  if (is_first) throw error_of(failure, node());
  run_.sink.warn(no_further_attempt(error_of(failure, node())));
  end();
}

/// Another node stops, or this one is stopped while it runs no worker. While the attempt's workers run elsewhere, the
/// reports of all nodes still decide; a second request does not wait for them.
///
/// \param victim  the worker that failed there looks like a victim of another one
void AttemptLoop::stop_early(const RunEnd& end, bool victim) {
  if (over_) return;
  if (!job_->waits()) return tell_supervisor(StoppedElsewhere{end, victim});
  if (early_end_ && !may_hurry(*early_end_, end)) return;
  const bool is_second = early_end_.has_value();
  early_end_ = end;
  if (end.is_ours()) job_->stop_others(end);
  if (job_->waits_to_begin() || job_->is_alone() || is_second) this->end();
}

void AttemptLoop::stop(const Event& event, const RunEnd& end) {
  if (waits()) return stop_early(end, false);
  Supervisor& supervisor = attempt_->supervisor();
  if (job_ && stops_for_others(supervisor.state()) && job_->leave_while_stopping(end)) early_end_ = end;
  const bool looked = checkpoint_look_.has_value();
  tell_supervisor(event);
  if (looked && checkpoint_look_) attempt_left({});  // a second request waits for no file server
}

/// Where no attempt may follow any more, nothing depends on checkpoints.
void AttemptLoop::tell_supervisor(const Event& event) {
  const bool was_unwanted = attempt_->supervisor().state().unwanted;
  attempt_->supervisor().handle(event);
  if (checkpoint_look_ && !was_unwanted && attempt_->supervisor().state().unwanted) attempt_left({});
}

void AttemptLoop::guard_died() {
  guard_died_ = true;
  stop(GuardDied{}, {RunEnd::Kind::kGuardDied});
  kill_children(run_.guard);
  if (waits()) end();
}

/// Another attempt follows, or the run is over.
void AttemptLoop::attempt_over() {
  hang_monitor_.reset();
  standstill_.reset();
  if (attempt_->terminal()) attempt_->terminal()->finish();
  for (const auto& [rank, steady_ns] : attempt_->first_steps()) {
    run_.record.events().first_step(rank, attempt_->membership().attempt, steady_ns);
  }
  const RunOutcome outcome = attempt_->supervisor().outcome();
  const bool succeeded = outcome.end.kind == RunEnd::Kind::kSucceeded;
  if (succeeded) {
    warn_without_liblrun(run_.plan, *attempt_, run_.sink);
    warn_of_program_left(run_, *attempt_);
  }
  if (job_ && !succeeded) (void)clean_up();
  if (succeeded) return attempt_left({});
  const std::string& pattern = run_.plan.checkpoint_path.value;
  const std::string memory = path_in_use(run_.guard.memory());
  if (pattern.empty() && memory.empty()) return attempt_left({});
  const FileSet own = files_of_lrun(run_.record.folders());
  const bool decides = !pattern.empty() && outcome.end.may_be_repeated() && run_.plan.max_restarts.value > 0 &&
                       !attempt_->supervisor().state().unwanted;
  checkpoint_look_.emplace(
      run_.loop, [&] { return look_for_checkpoints(pattern, own, memory); },
      decides ? kCheckpointLimit : kBriefCheckpointLimit,
      [this, decides](const ChildAnswer& answer) {
        if (decides) warn_of_no_look(answer, run_.plan.checkpoint_path.value, run_.sink);
        attempt_left(checkpoints_from(answer));
      });
}

/// The attempt is over, and what it has left is known.
void AttemptLoop::attempt_left(const NewestCheckpoints& found) {
  checkpoint_look_.reset();
  run_.record.events().checkpoints_found(attempt_->membership().attempt,
                                         std::max(found.kept_ns, told_checkpoint_ns(*attempt_)), found.in_memory_ns);
  const std::int64_t checkpoint_ns = run_.plan.checkpoint_path.given() ? found.newest_ns() : 0;
  const RunOutcome outcome = attempt_->supervisor().outcome();
  if (!job_) {
    Verdict verdict = judge(outcome.end, outcome.records, outcome.places);
    verdict.checkpoint_ns = checkpoint_ns;
    return attempt_judged(verdict, false);
  }
  if (early_end_) return end();  // the job goes on without us
  job_->attempt_over(outcome, attempt_->supervisor().state().unwanted,
                     screen_here(outcome.records, run_.logs, run_.reporter), checkpoint_ns);
  if (guard_died_ && !over_) end();
  if (!job_->waits()) return;
  waiting_note_ = run_.loop.after(kQuietWait, [this] {
    if (over_ || !job_->waits()) return;
    run_.job_sink.message_of_job(Severity::kNote, waiting_text(job_->membership(), run_.plan.is_of_one_rank));
  });
}

/// \param final  no attempt may follow
void AttemptLoop::attempt_judged(const Verdict& verdict, bool final) {
  waiting_note_.cancel();
  // An end that was asked for meanwhile is the reason where the job would have gone on without a node.
  if (job_ && !(early_end_ && verdict.end.changes_nodes())) agreed_ = verdict;
  if (final) return end();
  RestartChoice choice = restarts_.choice_after(verdict);
  const bool goes_on = choice.goes_on();
  if (goes_on && attempt_->supervisor().state().unwanted) return end();
  if (goes_on && !clean_up()) {
    if (job_) job_->cannot_clean_up();
    return end();
  }
  restarts_.make(std::move(choice));
  if (!goes_on) return end();
  agreed_.reset();
  back_off(verdict);
}

void AttemptLoop::back_off(const Verdict& verdict) {
  const RestartChoice& choice = restarts_.last();
  housework_.cancel();
  run_.limits.end_attempt();
  if (choice.kind == RestartChoice::Kind::kResize) {
    run_.record.events().noted("nodes_changed");
  } else {
    run_.record.events().restarting(choice.history.used, choice.delay);
  }
  const bool cause_printed = run_.reporter.take_told_stop();
  run_.job_sink.print_of_job(restart_text(verdict, choice, run_.plan, cause_printed, run_.job_sink.colour()));
  attempt_->supervisor().back_off(
      choice.delay, [this] { wait_for_next_round(); }, [this] { end(); });
}

/// Store and logs begin anew; the port stays the same.
void AttemptLoop::wait_for_next_round() {
  run_.store.leave();
  if (!job_) return restart();
  job_->ready(restarts_.last().history, run_.copies != nullptr ? run_.copies->keeps() : std::vector<FileOwner>());
}

void AttemptLoop::restart() {
  if (job_) enter_round();
  run_.reporter.begin_attempt();
  try {
    const std::optional<StartFailure> failure = begin_attempt();
    if (failure) return attempt_not_started(*failure, number_of_next(job(), restarts_), false);
  } catch (const std::system_error& error) {
    run_.sink.warn(no_further_attempt(error));
    return end();
  }
  run_.record.events().hold_back();
  go_on();
}

/// The job's nodes, and the place of this node among them, may have changed.
void AttemptLoop::enter_round() {
  const Membership& membership = job_->membership();
  place_anew(run_.plan, membership);
  enter(run_, membership);
  restarts_.take_history(membership.history);
  if (restarts_.last().kind != RestartChoice::Kind::kResize) return;
  run_.job_sink.message_of_job(
      Severity::kNote, fmt::format("all workers start again on {}: world size {}",
                                   strength_text(membership.num_nodes, *run_.plan.rendezvous), membership.world_size));
}

void AttemptLoop::end() {
  over_ = true;
  housework_.cancel();
  events_.over();
}

bool AttemptLoop::clean_up() {
  const bool is_short = job_.has_value() || (supervised() && attempt_->supervisor().gave_up());
  return end_what_is_left(run_.guard, is_short ? kShortCleanUpLimit : kCleanUpLimit, run_.sink, helpers_of(run_));
}

RunResult AttemptLoop::result() const {
  RunOutcome outcome = attempt_->supervisor().outcome();
  RunResult result;
  result.verdict = agreed_ ? *agreed_ : judge(early_end_.value_or(outcome.end), outcome.records, outcome.places);
  result.verdict.restarts = attempt_->membership().attempt;
  result.records = std::move(outcome.records);
  result.last_choice = restarts_.last().kind;
  result.logs = attempt_->written_logs();

  const std::optional<FailureRecord>& culprit = result.verdict.culprit;
  std::vector<FailureRecord> own;
  if (culprit && culprit->node_rank == node().node_rank) own.push_back(*culprit);
  ScreenLines screen = screen_here(own, run_.logs, run_.reporter);
  const bool is_shared = agreed_ && run_.shares_screen;  // lines of all launchers of the job stand there
  if (is_shared) screen.since_stop = agreed_->screen.since_stop;
  // Managers may keep the output of each task apart: what another launcher has shown there is not seen here.
  if (is_shared && run_.plan.has_head) screen.ranks_shown = agreed_->screen.ranks_shown;
  const bool few_follow = screen.since_stop <= ConsoleReporter::kLinesOnScreen;
  result.cause_on_screen = few_follow && run_.reporter.has_told(result.verdict);
  const std::vector<int>& shown = screen.ranks_shown;
  const bool shows_culprit = culprit && std::find(shown.begin(), shown.end(), culprit->rank) != shown.end();
  result.evidence_on_screen = shows_culprit && (few_follow || !is_shared);
  return result;
}

void AttemptLoop::leave_job(const std::string& text) {
  if (job_) job_->leave(text);
}

}  // namespace lrun::launcher
