// How the attempts of a run begin, and what lies between them: whether another one follows, and what the other nodes of
// a job have to do with it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/nearest.h"
#include "base/rank_list.h"
#include "cluster/slurm.h"
#include "plan/horovod_environment.h"
#include "plan/setting.h"
#include "report/restart_text.h"
#include "report/stack_text.h"
#include "run/attempt_status.h"
#include "run/end_facts.h"
#include "run/horovod_facts.h"
#include "run/node_launcher.h"
#include "run/rank_look.h"

namespace lrun::launcher {
namespace {

/// Nodes of one job end a moment apart.
constexpr Duration kQuietWait(2000);
constexpr std::size_t kMostNodesInWords = Membership::kMostNamedNodes - 1;

std::string waiting_in_words(const Membership& membership, bool of_ranks) {
  std::vector<std::string> others;
  for (std::size_t rank = 0; rank < membership.first_names.size(); ++rank) {
    if (static_cast<int>(rank) == membership.self.node_rank) continue;
    others.push_back(fmt::format("'{}' ({} {})", membership.first_names[rank], of_ranks ? "rank" : "node rank", rank));
  }
  others.resize(static_cast<std::size_t>(membership.num_nodes - 1));  // of those behind only the number is told
  if (of_ranks) {
    return fmt::format("the worker of rank {} has ended; waiting for those of {}", membership.self.node_rank,
                       join_first(others, kMostNodesInWords));
  }
  return fmt::format("the workers of this node have ended; waiting for those of {}",
                     join_first(others, kMostNodesInWords));
}

std::vector<int> ranks_missing_in(const HorovodValues& values, int world_size) {
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!values.ranks_seen().contains(rank)) missing.push_back(rank);
  }
  return missing;
}

}  // namespace

void NodeLauncher::join_job() {
  job_.emplace(
      *facts_.job, facts_.membership, *plan_.rendezvous, reporter_,
      JobObserver::Calls{
          .stop = [this](const RunEnd& end, bool victim) { end_early(end, victim); },
          .over = [this](const Verdict& verdict, bool final) { attempt_judged(verdict, final); },
          .begin = [this] { restart(); },
          .note = [this](const std::string& text) { print_of_job(message_line(Severity::kNote, text, colour())); },
          .warn = [this](const std::string& line) { sink().warn(line); }});
  take_history(facts_.membership);
  use_store_of_job();
}

Attempt::Surroundings NodeLauncher::surroundings() {
  Attempt::Surroundings all{plan_, facts_.start, loop_, *logs_, observer(), guard_};
  all.names_error_files = folders_.may_name_files();
  if (plan_.personality.failure != Personality::Failure::kTorchrunSummary) {  // which says nothing of what is seen
    all.look = [this] { return look_at_workers(); };
  }
  return all;
}

std::shared_ptr<void> NodeLauncher::look_at_workers() {
  if (hang_guard_) hang_guard_->end_look();
  return look_at_ranks(loop_, attempt_->running(), true, [this](const auto& samples, const std::string&) {
    attempt_->supervisor().saw_workers(places_of(fold_stacks(samples.value_or(std::vector<StackSample>()))));
  });
}

/// What the attempts came to before we came, or in the round before.
void NodeLauncher::take_history(const Membership& membership) {
  if (auto history = restart_history_from_json(membership.history)) last_choice_.history = *std::move(history);
}

/// The node that hosts the workers' store may change from round to round.
void NodeLauncher::use_store_of_job() {
  store_ = facts_.job->store_for(job_->membership());
  if (store_ == nullptr) return;
  listen_to_store();
}

/// The nodes of the job may be others than before, and so may our place among them.
void NodeLauncher::enter_round() {
  const Membership& membership = job_->membership();
  place_anew(plan_, membership);
  use_store_of_job();
  take_history(membership);
  if (last_choice_.kind != RestartChoice::Kind::kResize) return;
  print_of_job(message_line(Severity::kNote,
                            fmt::format("all workers start again on {}: world size {}",
                                        job_->nodes_in_words(membership.num_nodes), membership.world_size),
                            colour()));
}

RunObserver& NodeLauncher::observer() { return job_ ? static_cast<RunObserver&>(*job_) : reporter_; }

/// Another node stops, or somebody here stops while nothing of ours runs. Where an attempt's workers run elsewhere, all
/// nodes' reports still decide; who asks twice does not want to wait for them.
///
/// \param victim  a worker failed there that looks like a victim of another
void NodeLauncher::end_early(const RunEnd& end, bool victim) {
  if (concluding_) return;
  if (!job_->waits()) return attempt_->supervisor().handle(StoppedElsewhere{end, victim});
  const bool is_second = early_end_.has_value();
  early_end_ = end;
  if (end.is_ours()) job_->stop_others(end);
  if (job_->waits_to_begin() || job_->is_alone() || is_second) conclude();
}

/// Somebody here wants the run to end.
void NodeLauncher::stop_run(const Event& event, const RunEnd& end) {
  if (job_ && job_->waits()) return end_early(end);
  if (job_ && stops_for_others() && job_->leave_while_stopping(end)) early_end_ = end;
  attempt_->supervisor().handle(event);
}

/// The workers are being stopped for a reason that came from another node and after which the job goes on.
bool NodeLauncher::stops_for_others() const {
  const SupervisionState& state = attempt_->supervisor().state();
  return state.phase != SupervisionState::Phase::kBackingOff && !state.end.is_ours() && state.end.may_go_on();
}

bool NodeLauncher::is_term_again(int signal_number) const {
  return told_to_end_ && signal_number == SIGTERM && repeats_term(environment_);
}

/// The last attempt, which has a verdict, gives way only to one that runs.
std::optional<StartFailure> NodeLauncher::begin_attempt(int number) {
  Membership membership = job_ ? job_->membership() : sole_membership(plan_, store_->port());
  membership.attempt = number;
  if (!job_) membership.round = number;
  make_folders();
  auto next = std::make_unique<Attempt>(surroundings(), std::move(membership), folders_.logs(),
                                        LogFolder::of_attempt(number, starts_[number]++));
  if (plan_.personality.failure == Personality::Failure::kTorchrunSummary) {
    // The summary is made of error files, also those of programs that end within milliseconds.
    next->make_rank_folders();
  }
  if (std::optional<StartFailure> failure = next->start()) return failure;
  if (attempt_) logs_->begin_attempt();
  next->supervise({.finished = [this] { attempt_over(); },
                   .started = [this] { attempt_started(); },
                   .start_failed =
                       [this](const StartFailure& failure) {
                         start_failure_ =
                             loop_.after(Duration::zero(), [this, failure] { start_failed_later(failure); });
                       }});
  previous_attempt_ = std::exchange(attempt_, std::move(next));
  if (plan_.hang_timeout.value > Duration::zero()) {
    hang_guard_.emplace(loop_, plan_, *attempt_, *logs_, sink());
  }
  if (plan_.start_timeout.value > Duration::zero()) {
    start_timeout_ = loop_.after(plan_.start_timeout.value, [this] { check_connected(); });
  }
  return std::nullopt;
}

void NodeLauncher::make_folders() {
  const bool is_removed = folders_.is_run_removed();
  if (is_removed) {
    control_.reset();  // it is in there
    folders_.forget_run();
  }
  const bool has_to_log = WorkerOutput::workers_write_files(plan_.output, node());
  if (const std::string refusal = folders_.make(has_to_log); !refusal.empty()) sink().warn(refusal);
  if (folders_.logs() == nullptr) logs_->do_without_files();
  if (!is_removed) return;
  run_told_ = false;
  open_record();
}

/// All its workers run, or the rest is not to be started.
void NodeLauncher::attempt_started() {
  previous_attempt_.reset();
  const int number = attempt_->membership().attempt;
  if (std::exchange(run_told_, true)) {
    events_.attempt_started(number, attempt_->workers());
  } else {
    events_.run_started(plan_, attempt_->membership(), attempt_->workers(), attempt_->log_path());
  }
  tell_start();
}

/// What keeps an attempt from starting (a full disk, no processes left) does not hide how the last one ended.
void NodeLauncher::attempt_not_started(const StartFailure& failure, int number) {
  const FailureRecord record = record_of(failure, node(), number);
  if (job_) job_->start_failed(record);
  if (failure.exec_failed) {
    verdict_ = start_failed(record);
    return loop_.stop();
  }
  no_further_attempt(error_of(failure, node()).what());
}

void NodeLauncher::no_further_attempt(const std::string& why) {
  sink().warn("no further attempt can start: " + why);
  conclude();
}

void NodeLauncher::start_failed_later(const StartFailure& failure) {
  const int number = attempt_->membership().attempt;
  const bool is_first = !previous_attempt_;
  if (!is_first) attempt_ = std::move(previous_attempt_);
  if (!is_first || failure.exec_failed) return attempt_not_started(failure, number);
  if (job_) job_->start_failed(record_of(failure, node(), number));
  throw error_of(failure, node());
}

void NodeLauncher::tell_start() const {
  if (facts_.verbosity == 0) return;
  const AttemptWords words = start_in_words(plan_, *attempt_, facts_.start.executable.path,
                                            folders_.run() ? folders_.run()->path().string() : std::string());
  for (const std::string& line : words.info) verbose_.info(line);
  for (const std::string& line : words.debug) verbose_.debug(line);
}

void NodeLauncher::check_network() {
  const Membership membership = job_ ? job_->membership() : sole_membership(plan_, store_->port());
  const std::string problem = horovod_network_problem(membership, facts_.start.environment);
  if (!problem.empty()) sink().warn(problem);
}

/// Programs may open more connections than one a worker, or close theirs; too few altogether means that some never
/// came. Those of Horovod keep none: the node with their rendezvous knows of all ranks.
void NodeLauncher::check_connected() {
  if (is_horovod(plan_)) {
    if (store_ == nullptr) return;
    const std::vector<int> missing = ranks_missing_in(*store_->horovod(), plan_.world_size);
    if (missing.empty()) return;
    return time_is_over(RunEnd::Kind::kStartTimedOut, plan_.start_timeout.value, ranks_text(missing));
  }
  if (own_store_ && own_store_->clients_seen() >= attempt_->workers().size()) return;
  std::vector<int> missing = attempt_->without_connection(attempt_->membership().master_port);
  if (missing.empty()) return;
  time_is_over(RunEnd::Kind::kStartTimedOut, plan_.start_timeout.value, ranks_text(missing));
}

/// Another attempt follows, or the run is over.
void NodeLauncher::attempt_over() {
  hang_guard_.reset();
  if (attempt_->terminal()) attempt_->terminal()->finish();
  for (const auto& [rank, steady_ns] : attempt_->first_steps()) {
    events_.first_step(rank, attempt_->membership().attempt, steady_ns);
  }
  const RunOutcome outcome = attempt_->supervisor().outcome();
  if (outcome.end.kind == RunEnd::Kind::kSucceeded) tell_missing_liblrun();
  if (!job_) return attempt_judged(judge(outcome.end, outcome.records, outcome.places), false);
  if (outcome.end.kind != RunEnd::Kind::kSucceeded) nothing_survives();
  if (early_end_) return conclude();  // the job goes on without us
  job_->attempt_over(outcome, attempt_->supervisor().state().unwanted);
  if (guard_died_ && !concluding_) conclude();
  if (job_->waits()) waiting_note_ = loop_.after(kQuietWait, [this] { tell_waiting(); });
}

/// A shell script may start Python, and a program of its own language may have another library. All nodes run the same.
void NodeLauncher::tell_missing_liblrun() {
  const bool is_first = !job_ || job_->membership().self.node_rank == 0;
  if (!is_first || !plan_.watches_for_liblrun || attempt_->steps() > 0) return;
  const std::string text = fmt::format(
      "'{}' is carried out by liblrun, and no step of it was seen: the program may have trained {}; with '--liblrun' "
      "nobody looks",
      as_written(plan_.strategy), facts_of(plan_.strategy.value).without_liblrun);
  sink().message_of_job(Severity::kWarning, text);
}

void NodeLauncher::tell_waiting() {
  if (concluding_ || !job_->waits()) return;
  print_of_job(message_line(Severity::kNote, waiting_in_words(job_->membership(), plan_.is_of_one_rank), colour()));
}

/// \param final  no attempt may follow
void NodeLauncher::attempt_judged(const Verdict& verdict, bool final) {
  Supervisor& supervisor = attempt_->supervisor();
  waiting_note_.cancel();
  if (job_) agreed_ = verdict;
  if (final) return conclude();
  const RestartRules rules{plan_.max_restarts.value, plan_.restart_backoff.value, plan_.personality.repeats_identical};
  RestartChoice choice = choose_restart(rules, last_choice_.history, verdict);
  const bool fails_for_good = !choice.goes_on();
  if (!fails_for_good && supervisor.state().unwanted) return conclude();
  if (!fails_for_good && !nothing_survives()) {
    if (job_) job_->cannot_clean_up();
    return conclude();
  }
  last_choice_ = std::move(choice);
  if (fails_for_good) return conclude();
  agreed_.reset();
  housework_.cancel();
  start_timeout_.cancel();
  if (last_choice_.kind == RestartChoice::Kind::kResize) {
    events_.noted("nodes_changed");
  } else {
    events_.restarting(last_choice_.history.used, last_choice_.delay);
  }
  const bool said = reporter_.take_told_stop();
  print_of_job(restart_text(verdict, last_choice_, rules.most, said, colour()));
  supervisor.back_off(
      last_choice_.delay,
      [this] {
        if (!job_) {
          store_->reset();
          return restart();
        }
        if (store_ != nullptr) std::exchange(store_, nullptr)->set_listeners({}, {});  // it may outlive us
        job_->ready(last_choice_.history);
      },
      [this] { conclude(); });
}

/// Store and logs begin anew; the port stays.
void NodeLauncher::restart() {
  if (job_) enter_round();
  const int number = job_ ? job_->membership().attempt : last_choice_.history.used;
  try {
    if (const auto failure = begin_attempt(number)) return attempt_not_started(*failure, number);
  } catch (const std::system_error& error) {
    return no_further_attempt(error.what());
  }
  events_.hold_back();
  if (!attempt_->is_starting()) attempt_started();
  attempt_->open_log_files();
  plan_housework();
}

}  // namespace lrun::launcher
