// In: a plan with its place in the job, and what run_node() has opened for it. Out: the verdict of the run. run_node()
// runs one.
#include "run/node_launcher.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <utility>

#include "cluster/slurm.h"
#include "plan/horovod_environment.h"
#include "process/descendants.h"
#include "process/exit_codes.h"
#include "run/attempt_status.h"
#include "run/clean_up.h"
#include "run/console_patience.h"
#include "run/horovod_facts.h"

namespace lrun::launcher {
namespace {

RunEnding::Facts ending_facts(const NodeLauncher::Facts& facts) {
  return {.program = facts.program,
          .python = facts.python,
          .folder = facts.start.folder,
          .executable = facts.start.from_here(facts.start.executable.path)};
}

/// The nodes of the job that can answer `lrun stack`.
int nodes_of(const AttemptLoop& attempts) {
  const JobObserver* const job = attempts.job();
  return job == nullptr || job->is_alone() ? 1 : std::max(0, job->strength().others) + 1;
}

}  // namespace

NodeLauncher::NodeLauncher(const LaunchPlan& plan, const Surroundings& surroundings, Facts facts)
    : plan_(plan),
      run_(surroundings),
      facts_(std::move(facts)),
      started_(run_.clock.steady()),
      started_ms_(std::chrono::duration_cast<Duration>(run_.clock.wall().time_since_epoch()).count()),
      job_sink_(run_.output.sink, [this] { return speaks_for_job(); }),
      verbose_(facts_.verbosity, [this](const std::string& line) { run_.output.sink.print_of_job(line); }),
      ending_(plan_, run_.environment, ending_facts(facts_), run_.record, job_sink_),
      reporter_(
          ending_.text_facts(), run_.record.events(),
          [this](const std::string& text) {
            job_sink_.print_of_job(text);
            return speaks_for_job();
          },
          [this] { return run_.logs.console_lines(); }),
      limits_(run_.loop, plan_, [this](const RunEnd& end) { attempts_.stop(TimeIsOver{end}, end); }),
      attempts_({plan_, facts_.start, run_.loop, run_.logs, run_.guard, run_.store, run_.record, reporter_, limits_,
                 run_.output.sink, job_sink_, run_.look, run_.output.head != nullptr || shares_screen(),
                 facts_.fork_server.get(), facts_.copies, facts_.notice,
                 [this](std::string_view words, const ControlSocket::Reply& reply) {
                   job_answers_.ask(std::string(words), reply);
                 }},
                facts_.job, facts_.membership,
                {.begun = [this] { begun(); },
                 .started = [this] { print_start(); },
                 .start_failed =
                     [this](const FailureRecord& record) {
                       start_failed(record);
                       run_.loop.stop();
                     },
                 .over = [this] { conclude(); }}),
      signals_(run_.guard, signal_facts(),
               {.child_ended = [this] { child_ended(); },
                .guard_died = [this] { guard_died(); },
                .window_changed =
                    [this] {
                      if (attempts_.attempt().terminal()) attempts_.attempt().terminal()->resize();
                    },
                .arrived = [this](const SignalArrived& signal, bool repeats) { signal_arrived(signal, repeats); }}),
      usage_(run_.loop, run_.record.events(), run_.guard.pid(),
             [this]() -> const Attempt& { return attempts_.attempt(); }),
      own_answers_(
          run_.loop, run_.look, [this] { return status(); }, [this] { return standstill(); }),
      job_answers_(run_.loop, [this](const std::string& question) { return ask_all(question); }) {
  run_.record.set_answer(
      [this](std::string_view command, const ControlSocket::Reply& reply) { answer(command, reply); });
  run_.store.set_listeners([this](const std::string& line) { run_.output.sink.warn(line); },
                           [this](pid_t pid) { worker_connected(pid); });
  listen_to_workers();
}

void NodeLauncher::listen_to_workers() {
  run_.logs.set_events(
      {.drained =
           [this](int) {
             if (attempts_.supervised()) attempts_.attempt().supervisor().check_finished();
           },
       .console_closed =
           [this](LogStream stream) {
             if (stream != LogStream::kOut || !attempts_.supervised()) return;
             attempts_.stop(ConsoleClosed{}, {RunEnd::Kind::kConsoleClosed});
           },
       .warning = [this](const std::string& text) { run_.output.sink.warn(text); },
       .printed = [this](int rank, LogStream stream,
                         std::string_view bytes) { return watch_ && watch_->printed(rank, stream, bytes); },
       .noticed = [this] { watch_->react(); }});
  if (plan_.output.watch.empty()) return;
  watch_.emplace(WatchMonitor::Facts{.loop = run_.loop,
                                     .rules = plan_.output.watch,
                                     .sink = run_.output.sink,
                                     .events = run_.record.events(),
                                     .attempt = [this]() -> Attempt& { return attempts_.attempt(); },
                                     .stop = [this](const TimeIsOver& reason) { attempts_.stop(reason, reason.end); },
                                     .is_blocked = [this] { return !run_.logs.console_lines(); }});
}

NodeLauncher::~NodeLauncher() {
  if (facts_.job != nullptr) facts_.job->set_questions({});
  if (facts_.notice != nullptr) facts_.notice->stop();
  if (run_.output.head != nullptr) run_.output.head->stop_listening();
  run_.logs.set_events({});
  run_.store.set_listeners({}, {});
}

LauncherSignals::Facts NodeLauncher::signal_facts() const {
  LauncherSignals::Facts facts{.stop_signals = plan_.stop_signals.numbers,
                               .repeats_term = repeats_term(run_.environment),
                               .now = run_.clock.steady};
  if (const HeadChannel* const head = run_.output.head; head != nullptr) {
    facts.passed_on_by_head = [head](int signal_number) { return head->passed_on(signal_number); };
    facts.head_is_lost = [head] { return head->is_lost(); };
  }
  return facts;
}

Verdict NodeLauncher::run() {
  try {
    return run_attempts();
  } catch (const std::exception& error) {
    const bool has_attempt = attempts_.supervised();
    ending_.launcher_failed(
        error, has_attempt ? attempts_.attempt().membership().attempt : 0,
        has_attempt ? attempts_.attempt().supervisor().outcome().records : std::vector<FailureRecord>());
    if (metrics_) metrics_->end(kExitRefused);
    if (facts_.job != nullptr) (void)attempts_.clean_up();  // leaving the job may take a while
    throw;
  }
}

Verdict NodeLauncher::run_attempts() {
  if (is_horovod(plan_)) warn_of_network();
  if (const std::optional<FailureRecord> failure = attempts_.begin()) {
    start_failed(*failure);
    run_.record.remove();
    return verdict_;
  }
  warn_of_unread_input();
  run_.loop.run();
  run_.record.prune_others(false);
  return verdict_;
}

/// Other processes see the run from here on.
void NodeLauncher::begun() {
  signals_.begin(run_.loop);
  limits_.begin_run();
  run_.record.open();
  if (run_.record.folders().run() != nullptr) usage_.begin();
  if (plan_.output.metrics.value.is_given()) {
    metrics_.emplace(RunMetrics::Facts{.loop = run_.loop,
                                       .target = metrics_target(plan_),
                                       .sink = run_.output.sink,
                                       .status = [this] { return status(); },
                                       .reads_output = captures_any(plan_.output, plan_.nodes.front().workers)});
  }
  if (facts_.notice != nullptr) {
    facts_.notice->tell(run_.output.sink, [this](const std::string& notice) {
      const RunEnd end{.kind = RunEnd::Kind::kNotice, .who = notice};
      attempts_.stop(TimeIsOver{end}, end);
    });
  }
  answer_others();
  // In a job the head knows since the launchers have met.
  if (run_.output.head != nullptr && facts_.job == nullptr) run_.output.head->send_begun();
}

void NodeLauncher::answer_others() {
  if (facts_.job != nullptr) {
    facts_.job->set_questions(
        {.asked = [this](const std::string& question,
                         OwnAnswers::Reply reply) { own_answers_.answer(question, std::move(reply)); },
         .answered = [this](const std::string& answer) { job_answers_.add(answer); }});
  }
  if (HeadChannel* const head = run_.output.head; head != nullptr) {
    head->listen(run_.loop, [this, head](const std::string& question) {
      own_answers_.answer(question, [head](const std::string& answer) { head->send_told(answer); });
    });
  }
}

/// This launcher is one of them.
std::size_t NodeLauncher::ask_all(const std::string& question) {
  own_answers_.answer(question, [this](const std::string& answer) { job_answers_.add(answer); });
  if (facts_.job == nullptr) return 1;
  facts_.job->ask(question);
  return static_cast<std::size_t>(nodes_of(attempts_));
}

void NodeLauncher::warn_of_unread_input() {
  const bool is_read = plan_.standard_input || plan_.personality.standard_input != Personality::Stdin::kNull;
  if (is_read || facts_.maker_of_input_pipe == 0) return;
  unread_input_.emplace(run_.loop, facts_.maker_of_input_pipe,
                        [this] { run_.output.sink.warn("standard input is ignored: '--stdin' gives it to rank 0"); });
}

void NodeLauncher::warn_of_network() {
  const Membership membership = facts_.job != nullptr ? facts_.membership : sole_membership(plan_, run_.store.port());
  const std::string problem = horovod_network_problem(membership, facts_.start.environment);
  if (!problem.empty()) run_.output.sink.warn(problem);
}

void NodeLauncher::print_start() const {
  if (facts_.verbosity == 0) return;
  const Folder* const folder = run_.record.folders().run();
  const AttemptText words = describe_start(plan_, attempts_.attempt(), facts_.start.executable.path,
                                           folder != nullptr ? folder->path().string() : std::string());
  for (const std::string& line : words.info) verbose_.info(line);
  for (const std::string& line : words.debug) verbose_.debug(line);
}

int NodeLauncher::round() const {
  const JobObserver* const job = attempts_.job();
  return job != nullptr ? job->membership().round : 0;
}

void NodeLauncher::answer(std::string_view command, const ControlSocket::Reply& reply) {
  using Json = nlohmann::json;
  if (command == "stop") {
    attempts_.stop(StopRequested{}, {RunEnd::Kind::kRequested});
    return reply(Json{{"schema", 1}, {"stopping", true}}.dump());
  }
  if (command == "status") return reply(to_json(status()));
  if (command.starts_with(kJobCommand)) {
    return job_answers_.ask(std::string(command.substr(kJobCommand.size())), reply);
  }
  reply(Json{{"schema", 1}, {"error", "unknown command: 'status', 'job status', 'job stack' or 'stop'"}}.dump());
}

RunStatus NodeLauncher::status() {
  RunStatus status = attempt_status(attempts_.attempt(), run_.logs);
  if (attempts_.waits()) status.phase = "between_rounds";
  status.run_id = plan_.run_id;
  status.pid = run_.guard.pid();  // the process that a shell knows and that a signal reaches
  status.started_ms = started_ms_;
  status.running_ms = std::chrono::ceil<Duration>(run_.clock.steady() - started_).count();
  status.argv = plan_.argv;
  status.strategy = text_of(plan_.strategy.value);
  status.world_size = plan_.world_size;
  status.host = plan_.nodes.front().name;
  status.nodes = nodes_of(attempts_);
  status.master_port = attempts_.attempt().membership().master_port;
  return status;
}

std::string NodeLauncher::standstill() const {
  return to_json_within(attempts_.standing_still(), most_answer_bytes(attempts_.attempt().membership().num_nodes));
}

void NodeLauncher::worker_connected(pid_t pid) {
  if (!attempts_.supervised()) return;
  Attempt& attempt = attempts_.attempt();
  if (const std::optional<int> rank = attempt.first_connection(pid)) {
    run_.record.events().worker_connected(*rank, attempt.membership().attempt);
  }
}

void NodeLauncher::child_ended() {
  Attempt& attempt = attempts_.attempt();
  attempt.child_signalled();
  reap_adopted([&attempt](pid_t pid) { return attempt.supervisor().is_worker(pid); });
  if (guard_died_) kill_children(run_.guard);
  attempt.supervisor().check_finished();
}

void NodeLauncher::guard_died() {
  if (std::exchange(guard_died_, true)) return;
  if (attempts_.is_over()) return run_.loop.stop();
  attempts_.guard_died();
}

void NodeLauncher::signal_arrived(const SignalArrived& signal, bool repeats) {
  std::optional<TerminalRelay>& terminal = attempts_.attempt().terminal();
  if (terminal && signal.signal_number == SIGTSTP) terminal->release();
  if (terminal && signal.signal_number == SIGCONT) terminal->resume();
  if (watch_ && signal.signal_number == SIGCONT) watch_->went_on();
  const bool is_state = signal.signal_number == SIGTSTP || signal.signal_number == SIGCONT;
  if (repeats && (attempts_.is_over() || attempts_.waits())) return;
  if (attempts_.is_over() && !is_state) {
    // The run has ended, and only a console that takes little or nothing keeps lrun here.
    if (!run_.logs.hurry_last_lines(kHurriedPatience)) run_.loop.stop();
    return;
  }
  const bool is_for_workers = (signal.signal_number == SIGUSR1 || signal.signal_number == SIGUSR2) && !signal.named;
  if (is_state || is_for_workers) return attempts_.attempt().supervisor().handle(signal);
  signals_.note_end_asked();
  constexpr Duration kQuiet(
      10'000);  // a person who ends such a run asks what it waits for; a debugger would take seconds
  SignalArrived seen = signal;
  seen.in_quiet = runs_python(plan_) && are_quiet(attempts_.attempt(), run_.logs, kQuiet);
  attempts_.stop(seen, seen.end());
}

void NodeLauncher::conclude() {
  limits_.end();
  usage_.end();
  if (facts_.notice != nullptr) facts_.notice->stop();
  run_.record.close();
  left_nothing_ = attempts_.clean_up();
  run_.store.report_refusals();
  const RunResult result = attempts_.result();
  verdict_ = result.verdict;
  attempts_.leave_job(job_result_text(verdict_));
  if (metrics_) metrics_->end(verdict_.exit_code);
  const std::string text = ending_.write(result);
  // On other nodes lines may have matched, and a run that did not succeed may not have come to its first.
  const bool is_complete = attempts_.job() == nullptr && verdict_.end.kind == RunEnd::Kind::kSucceeded;
  if (watch_ && is_complete) watch_->warn_of_idle();
  run_.logs.begin_last_lines();
  if (!text.empty()) job_sink_.print_of_job(text);
  const Duration patience = guard_died_ ? Duration::zero() : console_patience(verdict_.end.kind);
  run_.logs.when_flushed(patience, [this](bool) { run_.loop.stop(); });
}

void NodeLauncher::start_failed(const FailureRecord& record) {
  left_nothing_ = attempts_.clean_up();
  verdict_ = ending_.start_failed(record);
  if (metrics_) metrics_->end(verdict_.exit_code);
  run_.logs.flush(kLastWordPatience);
}

bool NodeLauncher::shares_screen() const { return plan_.rendezvous && plan_.rendezvous->shares_screen; }

/// All launchers of a job would print the same.
bool NodeLauncher::speaks_for_job() const {
  const JobObserver* const job = attempts_.job();
  return !shares_screen() || job == nullptr || job->speaks();
}

}  // namespace lrun::launcher
