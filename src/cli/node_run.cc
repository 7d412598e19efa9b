#include "cli/node_run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>

#include "base/rank_list.h"
#include "base/small_file.h"
#include "cli/attempt_status.h"
#include "cli/diagnostics.h"
#include "plan/cpu_binding.h"
#include "process/descendants.h"
#include "process/guard.h"
#include "process/program_path.h"
#include "report/parent_error_file.h"
#include "report/restart_text.h"
#include "report/result_json.h"
#include "report/torchrun_summary.h"
#include "verdict/core_file.h"

namespace lrun {
namespace {

constexpr std::size_t kRunsKept = 50;
constexpr Duration kKillLimit(5000);
constexpr std::size_t kRunsTolerated = 100;  // by runs too short to have time for old ones
// Not at once: folders for eight workers cost half as much as starting them, and an interpreter that could write an
// error file takes longer than this to start. Old runs are removed then, too.
constexpr Duration kHouseworkDelay(10);
constexpr Duration kFailurePatience(60'000);
constexpr Duration kInterruptedPatience(5000);
constexpr Duration kNoLimit(std::chrono::hours(24 * 365));

std::int64_t now_ms() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count();
}

RunFactsForText text_facts(const LaunchPlan& plan, const std::string& program, const std::filesystem::path& logs) {
  return {.grace = plan.grace.value, .program = program, .logs = logs.string(), .colour = takes_colour(STDERR_FILENO)};
}

/// What torchrun's summary shows of an error file: its call stack, else its message.
std::string read_own_account(const FailureRecord& record) {
  if (record.error_file.empty()) return {};
  const auto file = parse_error_file(read_small_file(record.error_file, ErrorFile::kMostBytes).value_or(""));
  if (!file) return record.error;
  return file->call_stack.empty() ? file->message : file->call_stack;
}

std::string core_dump_of(const Verdict& verdict, const LaunchPlan& plan, const WorkerStart& start) {
  if (!plan.setup.core_dumps || !verdict.culprit || !verdict.culprit->core_dumped) return {};
  std::error_code error;
  const std::string folder = start.folder.empty() ? std::filesystem::current_path(error).string() : start.folder;
  return core_dump_in_words(verdict.culprit->pid, verdict.culprit->value, folder);
}

}  // namespace

NodeRun::NodeRun(const LaunchPlan& plan, const Environment& environment, Facts facts)
    : plan_(plan),
      environment_(environment),
      facts_(std::move(facts)),
      verbose_(facts_.verbosity, [this](const std::string& line) { say(line); }),
      run_folder_(state_folder(environment) / plan.run_id),
      log_folder_(plan, environment, run_folder_),
      started_ms_(now_ms()),
      store_(loop_, {.port = static_cast<std::uint16_t>(plan.master_port.value_or(0)),
                     .log = [this](const std::string& line) { warn(line); },
                     .greeted = [this](pid_t pid) { worker_connected(pid); }}),
      reporter_(text_facts(plan, facts_.program, {}), events_, [this](const std::string& text) { say(text); }) {
  logs_.emplace(loop_, log_options(plan, node(), environment, plan.output.files),
                LogEvents{.drained =
                              [this](int) {
                                if (supervised()) attempt_->supervisor().look_again();
                              },
                          .console_closed =
                              [this](LogStream stream) {
                                if (stream == LogStream::kOut && supervised())
                                  attempt_->supervisor().handle(ConsoleClosed{});
                              },
                          .warning = [this](const std::string& text) { warn(text); }});
}

Verdict NodeRun::run() {
  if (const std::optional<StartFailure> failure = begin_attempt(0)) return start_failed(*failure);
  std::vector<int> signals = handled_signals(plan_.stop_signals.numbers);
  signals.push_back(SIGCHLD);
  signals.push_back(guard_died_signal());
  signals_.emplace(loop_, signals, [this](int signal_number, pid_t sender) { signal_arrived(signal_number, sender); });
  if (plan_.timeout.value > Duration::zero()) {
    timeout_ = loop_.after(plan_.timeout.value, [this] { time_is_over(RunEnd::Kind::kTimedOut, plan_.timeout.value); });
  }
  open_run_directory();
  loop_.run();
  prune_runs(run_folder_.parent_path(), kRunsKept, kRunsTolerated);
  return verdict_;
}

std::optional<StartFailure> NodeRun::begin_attempt(int number) {
  Membership membership = sole_membership(plan_, store_.port());
  membership.attempt = number;
  attempt_.emplace(Attempt::Surroundings{plan_, facts_.start, loop_, *logs_, reporter_}, std::move(membership),
                   log_folder_.attempt(number));
  if (attempt_->needs_folder()) make_folders();
  if (plan_.personality.failure == Personality::Failure::kTorchrunSummary) prepare_accounts();
  if (std::optional<StartFailure> failure = attempt_->start()) return failure;
  attempt_->supervise([this] { attempt_over(); });
  if (plan_.hang_timeout.value > Duration::zero()) {
    hang_guard_.emplace(loop_, plan_, *attempt_, *logs_, [this](const std::string& text) { say(text); });
  }
  if (plan_.start_timeout.value > Duration::zero()) {
    start_timeout_ = loop_.after(plan_.start_timeout.value, [this] { check_connected(); });
  }
  tell_start();
  return std::nullopt;
}

void NodeRun::time_is_over(RunEnd::Kind kind, Duration limit) {
  RunEnd end{kind};
  end.limit_ms = limit.count();
  attempt_->supervisor().handle(TimeIsOver{end});
}

/// Programs may open more connections than one a worker, or close theirs; too few altogether means that some never
/// came.
void NodeRun::check_connected() {
  if (store_.clients_seen() >= attempt_->workers().size()) return;
  std::vector<int> missing = attempt_->without_connection(store_.port());
  if (missing.empty()) return;
  warn(fmt::format("not connected to the store: {}", ranks_in_words(missing)));
  time_is_over(RunEnd::Kind::kStartTimedOut, plan_.start_timeout.value);
}

void NodeRun::tell_start() const {
  if (facts_.verbosity == 0) return;
  verbose_.info(fmt::format("run {}: {} workers of {}, strategy {}, backend {}", plan_.run_id,
                            attempt_->workers().size(), facts_.start.executable.path, plan_.strategy.value,
                            plan_.process_group_backend.value));
  verbose_.info(fmt::format("store on {}:{}, run folder {}", attempt_->membership().master_addr, store_.port(),
                            run_folder_.string()));
  for (const std::string& line : binding_lines(node())) verbose_.info(line);
  for (const Worker& worker : attempt_->workers()) {
    verbose_.debug(fmt::format("rank {} is pid {}", worker.rank, worker.process.pid()));
  }
}

/// A summary in torchrun's words is made of error files, also those of programs that end within milliseconds.
void NodeRun::prepare_accounts() {
  try {
    make_folders();
    attempt_->make_rank_folders();
  } catch (const std::system_error&) {  // open_run_directory() meets and tells it again
  }
}

void NodeRun::make_folders() {
  if (!run_directory_) run_directory_.emplace(run_folder_);
  log_folder_.make();
}

/// A run without its folder is still a run: what fails here is one warning.
void NodeRun::open_run_directory() {
  try {
    make_folders();
    events_ = EventLog(run_folder_ / "events.jsonl");
    events_.run_started(plan_, attempt_->workers(), store_.port(), log_folder_.attempt(0));
    control_.emplace(loop_, run_folder_, [this](std::string_view command) { return answer(command); });
  } catch (const std::system_error& error) {
    warn(fmt::format("no run directory: {}", error.what()));
  }
  attempt_->open_log_files();
  plan_housework();
}

void NodeRun::plan_housework() {
  housework_ = loop_.after(kHouseworkDelay, [this] {
    attempt_->make_rank_folders();
    prune_runs(run_folder_.parent_path(), kRunsKept, kRunsKept);
  });
}

std::string NodeRun::answer(std::string_view command) {
  using Json = nlohmann::json;
  if (command == "stop") {
    attempt_->supervisor().handle(StopRequested{});
    return Json{{"schema", 1}, {"stopping", true}}.dump();
  }
  if (command != "status") return Json{{"schema", 1}, {"error", "unknown command: 'status' or 'stop'"}}.dump();
  RunStatus status = attempt_status(*attempt_, *logs_);
  status.run_id = plan_.run_id;
  status.pid = ::getppid();  // the guard: whom a shell knows and a signal reaches
  status.started_ms = started_ms_;
  status.argv = plan_.argv;
  status.strategy = plan_.strategy.value;
  status.world_size = plan_.world_size;
  status.master_port = store_.port();
  return to_json(status);
}

bool NodeRun::is_named(int signal_number) const {
  const std::vector<int>& named = plan_.stop_signals.numbers;
  return std::find(named.begin(), named.end(), signal_number) != named.end();
}

/// Also those that would hold a dead worker's pipe. What they leave behind becomes our child, and we are called again.
void NodeRun::kill_children() {
  for (const pid_t child : direct_children()) ::kill(child, SIGKILL);
}

void NodeRun::worker_connected(pid_t pid) {
  if (!attempt_) return;
  if (const std::optional<int> rank = attempt_->first_connection(pid)) {
    events_.worker_connected(*rank, attempt_->membership().attempt);
  }
}

void NodeRun::signal_arrived(int signal_number, pid_t sender) {
  if (signal_number == SIGCHLD) {
    attempt_->child_signalled();
    reap_adopted([this](pid_t pid) { return attempt_->supervisor().is_worker(pid); });
    if (guard_died_) kill_children();
    attempt_->supervisor().look_again();
    return;
  }
  if (signal_number == SIGWINCH) {
    if (attempt_->terminal()) attempt_->terminal()->resize();
    return;
  }
  if (attempt_->terminal() && signal_number == SIGTSTP) attempt_->terminal()->release();
  if (attempt_->terminal() && signal_number == SIGCONT) attempt_->terminal()->resume();
  const bool wants_out = signal_number != SIGTSTP && signal_number != SIGCONT;
  if (concluding_ && wants_out) {  // only a console that takes nothing keeps us here
    loop_.stop();
    return;
  }
  if (signal_number == guard_died_signal()) {
    guard_died_ = true;
    attempt_->supervisor().handle(GuardDied{});
    kill_children();
  } else {
    attempt_->supervisor().handle(SignalArrived{signal_number, sender == ::getppid(), is_named(signal_number)});
  }
}

/// Another attempt follows, or the run is over.
void NodeRun::attempt_over() {
  hang_guard_.reset();
  if (attempt_->terminal()) attempt_->terminal()->finish();
  Supervisor& supervisor = attempt_->supervisor();
  const RunOutcome outcome = supervisor.outcome();
  const Verdict verdict = judge(outcome.end, outcome.records);
  const RestartRules rules{plan_.max_restarts.value, plan_.restart_backoff.value, plan_.personality.repeats_identical};
  RestartChoice choice = choose_restart(rules, last_choice_.history, verdict);
  const bool fails_for_good = choice.kind != RestartChoice::Kind::kRestart;
  if (!fails_for_good && (supervisor.state().unwanted || !nothing_survives())) return conclude();
  last_choice_ = std::move(choice);
  if (fails_for_good) return conclude();
  housework_.cancel();
  start_timeout_.cancel();
  events_.restarting(last_choice_.history.used, last_choice_.delay);
  const bool said = std::any_of(outcome.records.begin(), outcome.records.end(),
                                [](const FailureRecord& record) { return record.stopped_by_lrun(); });
  say(restart_text(verdict, last_choice_, rules.most, said, takes_colour(STDERR_FILENO)));
  supervisor.back_off(
      last_choice_.delay, [this] { restart(); }, [this] { conclude(); });
}

/// Store and logs begin anew; the port stays.
void NodeRun::restart() {
  store_.reset();
  logs_->begin_attempt();
  const int number = last_choice_.history.used;
  if (const std::optional<StartFailure> failure = begin_attempt(number)) {
    verdict_ = start_failed(*failure);
    loop_.stop();
    return;
  }
  events_.attempt_started(number, attempt_->workers());
  attempt_->open_log_files();
  plan_housework();
}

/// Ends whatever the workers left. \return false when something cannot be ended.
bool NodeRun::nothing_survives() {
  const std::vector<pid_t> survivors = end_all_descendants(kKillLimit);
  if (survivors.empty()) return true;
  warn(fmt::format("{} processes cannot be ended (uninterruptible in the kernel), first pid {}", survivors.size(),
                   survivors.front()));
  return false;
}

void NodeRun::conclude() {
  concluding_ = true;
  housework_.cancel();
  timeout_.cancel();
  start_timeout_.cancel();
  control_.reset();
  log_folder_.remove_when_unused();
  (void)nothing_survives();
  const RunOutcome outcome = attempt_->supervisor().outcome();
  verdict_ = judge(outcome.end, outcome.records);
  verdict_.restarts = attempt_->membership().attempt;
  if (const std::string problem = leave_error_file(environment_, verdict_); !problem.empty()) warn(problem);
  RunFactsForText facts = text_facts(plan_, facts_.program, attempt_->written_logs());
  facts.core_dump = core_dump_of(verdict_, plan_, facts_.start);
  facts.restarts = restarts_in_words(last_choice_.kind, verdict_.restarts);
  write_result(verdict_, outcome.records, facts);
  const bool summary = plan_.personality.failure == Personality::Failure::kTorchrunSummary;
  const std::string text = summary ? torchrun_summary(verdict_, outcome.records, facts_.program, read_own_account)
                                   : verdict_text(verdict_, facts);
  if (!text.empty()) say(text);
  logs_->when_flushed(console_patience(), [this](bool) { loop_.stop(); });
}

void NodeRun::write_result(const Verdict& verdict, const std::vector<FailureRecord>& records, RunFactsForText facts) {
  facts.colour = false;
  events_.run_ended(verdict);
  if (!run_directory_) return;
  try {
    write_atomically(run_folder_ / "result.json",
                     result_json(plan_.run_id, verdict, records, verdict_text(verdict, facts)));
  } catch (const std::system_error& error) {
    warn(fmt::format("no result.json: {}", error.what()));
  }
}

/// How long a console that takes nothing may keep an ended run. Output of a run that went its way is worth any wait
/// (`lrun … | less`); who interrupted it does not want one.
Duration NodeRun::console_patience() const {
  if (guard_died_) return Duration::zero();
  switch (verdict_.end.kind) {
    case RunEnd::Kind::kSucceeded:
      return kNoLimit;
    case RunEnd::Kind::kWorkerFailed:
      return kFailurePatience;
    default:
      return kInterruptedPatience;
  }
}

Verdict NodeRun::start_failed(const StartFailure& failure) {
  end_all_descendants(kKillLimit);
  FailureRecord record;
  record.node = node().name;
  record.rank = node().base_rank + failure.local_rank;
  record.local_rank = failure.local_rank;
  record.ending = FailureRecord::Ending::kExecFailed;
  record.value = failure.error_number;
  record.cause = Cause::kExecFailed;
  if (!failure.exec_failed) {
    throw std::system_error(failure.error_number, std::generic_category(),
                            fmt::format("cannot start worker {} of {}", failure.local_rank, node().workers.size()));
  }
  record.attempt = attempt_->membership().attempt;
  Verdict verdict = judge({RunEnd::Kind::kStartFailed}, {record});
  verdict.restarts = record.attempt;
  RunFactsForText facts = text_facts(plan_, facts_.program, {});
  facts.interpreter = interpreter_of(facts_.start.from_here(facts_.start.executable.path));
  write_result(verdict, {record}, facts);
  say(verdict_text(verdict, facts));
  if (const std::string problem = leave_error_file(environment_, verdict); !problem.empty()) warn(problem);
  logs_->flush(kInterruptedPatience);
  return verdict;
}

void NodeRun::say(const std::string& text) {
  logs_->say(text);  // never blocks, also where the workers own the console
}

void NodeRun::warn(const std::string& text) {
  say(message_line(Severity::kWarning, text, takes_colour(STDERR_FILENO)));
}

}  // namespace lrun
