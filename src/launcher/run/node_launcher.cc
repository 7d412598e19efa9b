#include "run/node_launcher.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/own_signals.h"
#include "base/replaced_file.h"
#include "plan/cpu_binding.h"
#include "plan/horovod_environment.h"
#include "process/descendants.h"
#include "process/program_path.h"
#include "rendezvous/handshake.h"
#include "report/parent_error_file.h"
#include "report/restart_text.h"
#include "report/result_json.h"
#include "report/torchrun_summary.h"
#include "run/attempt_status.h"
#include "run/end_facts.h"
#include "store/send_buffer.h"
#include "verdict/hint_table.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kRunsKept = 50;
constexpr Duration kKillLimit(5000);
constexpr Duration kLimitAfterKill(2000);    // for what is below workers that had that time already
constexpr std::size_t kRunsTolerated = 100;  // by runs too short to have time for old ones
// Not at once: folders for eight workers cost half as much as starting them, and an interpreter that could write an
// error file takes longer than this to start. Old runs are removed then, too.
constexpr Duration kHouseworkDelay(10);

std::int64_t now_ms() {
  return std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

NodeLauncher::NodeLauncher(const LaunchPlan& plan, const Environment& environment, Facts facts, EventLoop& loop,
                           const Guard& guard)
    : guard_(guard),
      plan_(plan),
      environment_(environment),
      facts_(std::move(facts)),
      verbose_(facts_.verbosity, [this](const std::string& line) { sink().print_of_job(line); }),
      folders_(plan_, environment),
      started_ms_(now_ms()),
      loop_(loop),
      reporter_(text_facts(plan, facts_.program, facts_.python, {},
                           facts_.head != nullptr ? facts_.head->colour() : takes_colour(STDERR_FILENO)),
                events_, [this](const std::string& text) { print_of_job(text); }) {
  logs_.emplace(loop_, log_options(plan, node(), plan.output.files),
                LogEvents{.drained =
                              [this](int) {
                                if (supervised()) attempt_->supervisor().look_again();
                              },
                          .console_closed =
                              [this](LogStream stream) {
                                if (stream == LogStream::kOut && supervised())
                                  stop_run(ConsoleClosed{}, {RunEnd::Kind::kConsoleClosed});
                              },
                          .warning = [this](const std::string& text) { sink().warn(text); }});
  console_sink_.emplace(*logs_, takes_colour(STDERR_FILENO));
  if (facts_.job != nullptr) {
    join_job();
  } else {
    open_store();
  }
}

/// The job, and with it the workers' store, goes on for the other nodes' sake.
NodeLauncher::~NodeLauncher() {
  if (store_ != nullptr) store_->set_listeners({}, {});
}

/// On one node nobody else has to reach the store, unless --local-addr says under which address workers are to.
void NodeLauncher::open_store() {
  StoreServerOptions options{.port = static_cast<std::uint16_t>(plan_.master_port.value_or(0)),
                             .any_port_will_do = plan_.any_port_will_do,
                             .only_keeps_port = plan_.rank_0_hosts_store,
                             .max_connections = facts_.most_connections,
                             .foreign_byte = kLauncherProtocol.front(),
                             .foreign = [this](const Fd& launcher, const std::string&) { turn_away(launcher); },
                             .serves_horovod = is_horovod(plan_)};
  const std::string& address = plan_.master_addr;
  const bool numeric =
      address.find_first_not_of("0123456789.") == std::string::npos || address.find(':') != address.npos;
  if (numeric) options.address = address;
  if (!numeric && address != "localhost") options.reach = StoreReach::kNetwork;
  own_store_.emplace(loop_, std::move(options));
  store_ = &*own_store_;
  listen_to_store();
}

void NodeLauncher::listen_to_store() {
  StoreRunLook look{.has_user = [this](uid_t user) { return processes_.has_user(user); }};
  // With a launcher for each rank most workers of this host are below others.
  if (!plan_.is_of_one_rank) look.sockets = [this] { return processes_.sockets(); };
  store_->set_listeners([this](const std::string& line) { sink().warn(line); },
                        [this](pid_t pid) { worker_connected(pid); }, std::move(look));
}

/// A launcher of another job, or of this one where its number of nodes was forgotten: nobody meets here.
void NodeLauncher::turn_away(const Fd& launcher) const {
  SendBuffer answer;
  answer.tail() = lone_job_handshake(plan_.run_name == plan_.run_id ? "" : plan_.run_name);
  (void)answer.send_to(launcher.get());
}

Verdict NodeLauncher::run() {
  try {
    return run_attempts();
  } catch (const std::exception& error) {
    leave_result_of(error);
    if (job_) nothing_survives();  // leaving the job may take a while
    throw;
  }
}

Verdict NodeLauncher::run_attempts() {
  const int number = first_attempt();
  if (is_horovod(plan_)) check_network();
  if (const std::optional<StartFailure> failure = begin_attempt(number)) {
    if (job_) job_->start_failed(record_of(*failure, node(), number));
    if (!failure->exec_failed) throw error_of(*failure, node());
    Verdict verdict = start_failed(record_of(*failure, node(), number));
    folders_.remove();
    return verdict;
  }
  std::vector<int> signals = handled_signals(plan_.stop_signals.numbers);
  for (const int own : {SIGCHLD, forwarded_signal()}) signals.push_back(own);
  signals_.emplace(loop_, signals, [this](const ReceivedSignal& signal) { signal_received(signal); });
  if (plan_.timeout.value > Duration::zero()) {
    timeout_ = loop_.after(plan_.timeout.value, [this] { time_is_over(RunEnd::Kind::kTimedOut, plan_.timeout.value); });
  }
  open_record();
  if (!attempt_->is_starting()) attempt_started();
  attempt_->open_log_files();
  plan_housework();
  watch_unread_input();
  loop_.run();
  folders_.prune_others(kRunsKept, kRunsTolerated);
  return verdict_;
}

void NodeLauncher::watch_unread_input() {
  const bool is_read = plan_.standard_input || plan_.personality.standard_input != Personality::Stdin::kNull;
  if (is_read || facts_.maker_of_input_pipe == 0) return;
  unread_input_.emplace(loop_, facts_.maker_of_input_pipe, [this] {
    sink().warn("nobody reads what is piped into lrun: with '--stdin' rank 0 does, and the others nothing");
  });
}

void NodeLauncher::time_is_over(RunEnd::Kind kind, Duration limit, const std::string& who) {
  RunEnd end{kind};
  end.limit_ms = limit.count();
  end.who = who;
  stop_run(TimeIsOver{end}, end);
}

/// Others see the run from here on.
void NodeLauncher::open_record() {
  const Folder* const folder = folders_.run();
  if (folder == nullptr) return;
  try {
    events_ = EventLog(*folder);
    events_.hold_back();
    control_.emplace(loop_, *folder, [this](std::string_view command) { return answer(command); });
    folders_.begin();
  } catch (const std::system_error& error) {
    sink().warn(fmt::format("no record of this run will be kept: {}", error.what()));
  }
}

void NodeLauncher::plan_housework() {
  housework_ = loop_.after(kHouseworkDelay, [this] {
    attempt_->make_rank_folders();
    folders_.prune_others(kRunsKept, kRunsKept);
    guard_.cgroup().remove_abandoned();
  });
}

std::string NodeLauncher::answer(std::string_view command) {
  using Json = nlohmann::json;
  if (command == "stop") {
    stop_run(StopRequested{}, {RunEnd::Kind::kRequested});
    return Json{{"schema", 1}, {"stopping", true}}.dump();
  }
  if (command != "status") return Json{{"schema", 1}, {"error", "unknown command: 'status' or 'stop'"}}.dump();
  RunStatus status = attempt_status(*attempt_, *logs_);
  status.run_id = plan_.run_id;
  status.pid = guard_.pid();  // whom a shell knows and a signal reaches
  status.started_ms = started_ms_;
  status.running_ms = std::chrono::ceil<Duration>(steady_now() - started_).count();
  status.argv = plan_.argv;
  status.strategy = text_of(plan_.strategy.value);
  status.world_size = plan_.world_size;
  status.master_port = attempt_->membership().master_port;
  return to_json(status);
}

bool NodeLauncher::is_named(int signal_number) const {
  const std::vector<int>& named = plan_.stop_signals.numbers;
  return std::find(named.begin(), named.end(), signal_number) != named.end();
}

/// Also those that would hold a dead worker's pipe. What they leave behind becomes our child, and we are called again.
void NodeLauncher::kill_children() {
  guard_.cgroup().kill();
  for (const pid_t child : direct_children()) ::kill(child, SIGKILL);
}

void NodeLauncher::worker_connected(pid_t pid) {
  if (!attempt_) return;
  if (const std::optional<int> rank = attempt_->first_connection(pid)) {
    events_.worker_connected(*rank, attempt_->membership().attempt);
  }
}

void NodeLauncher::signal_received(const ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) {
    attempt_->child_signalled();
    reap_adopted([this](pid_t pid) { return attempt_->supervisor().is_worker(pid); });
    if (guard_died_) kill_children();
    attempt_->supervisor().look_again();
  } else if (signal.number == forwarded_signal()) {
    if (signal.sender == ::getpid() && guard_.has_died()) return guard_died();
    if (signal.sender != guard_.pid()) return;
    guard_.note_heard();
    signal_arrived(signal.value, true);
  } else if (signal.number == SIGCONT && guard_.has_died()) {
    return;  // of the guard's end: its death is told by its own signal
  } else if (signal.number == SIGWINCH) {
    if (attempt_->terminal()) attempt_->terminal()->resize();
  } else {
    signal_arrived(signal.number, signal.sender == guard_.pid());
  }
}

void NodeLauncher::guard_died() {
  if (std::exchange(guard_died_, true)) return;
  if (concluding_) return loop_.stop();
  stop_run(GuardDied{}, {RunEnd::Kind::kGuardDied});
  kill_children();
  if (job_ && job_->waits()) conclude();
}

void NodeLauncher::signal_arrived(int signal_number, bool forwarded) {
  if (attempt_->terminal() && signal_number == SIGTSTP) attempt_->terminal()->release();
  if (attempt_->terminal() && signal_number == SIGCONT) attempt_->terminal()->resume();
  const bool wants_out = signal_number != SIGTSTP && signal_number != SIGCONT;
  const bool is_echo = echo_.is_echo(signal_number, forwarded, std::chrono::steady_clock::now());
  const bool again = is_term_again(signal_number);
  if ((is_echo || again) && (concluding_ || (job_ && job_->waits()))) return;
  if (concluding_ && wants_out) {  // only a console that takes little or nothing keeps us here
    if (!logs_->hurry_last_words(kHurriedPatience)) loop_.stop();
    return;
  }
  const bool for_workers = (signal_number == SIGUSR1 || signal_number == SIGUSR2) && !is_named(signal_number);
  const SignalArrived event{signal_number,
                            forwarded,
                            is_named(signal_number),
                            !again,
                            facts_.head != nullptr && facts_.head->passed_on(signal_number),
                            facts_.head != nullptr && facts_.head->is_lost()};
  if (!wants_out || for_workers) return attempt_->supervisor().handle(event);
  told_to_end_ = true;
  stop_run(event, event.end());
}

/// Ends whatever the workers left. \return false when something runs on.
bool NodeLauncher::nothing_survives() {
  // Other nodes hear nothing from us meanwhile: it has to be shorter than a heartbeat.
  const bool waited = job_.has_value() || (supervised() && attempt_->supervisor().gave_up());
  const std::vector<pid_t> survivors = end_all_descendants(waited ? kLimitAfterKill : kKillLimit, guard_.cgroup());
  if (survivors.empty()) return true;
  sink().warn(survivors_text(survivors));
  return are_dead(survivors);
}

void NodeLauncher::conclude() {
  concluding_ = true;
  housework_.cancel();
  timeout_.cancel();
  start_timeout_.cancel();
  control_.reset();
  folders_.remove_unused_logs();
  left_nothing_ = nothing_survives();
  if (store_ != nullptr) store_->tell_refusals();
  const RunOutcome outcome = attempt_->supervisor().outcome();
  verdict_ = agreed_ ? *agreed_ : judge(early_end_.value_or(outcome.end), outcome.records, outcome.places);
  verdict_.restarts = attempt_->membership().attempt;
  if (job_) job_->bye(what_became_of_job(verdict_));
  if (const std::string problem = leave_error_file(environment_, verdict_); !problem.empty()) sink().warn(problem);
  RunFactsForText facts = text_facts(plan_, facts_.program, facts_.python, attempt_->written_logs(), colour());
  facts.core_dump = core_dump_of(verdict_, outcome.records, plan_, facts_.start.folder);
  facts.restarts = restarts_in_words(last_choice_.kind, verdict_.restarts);
  facts.cause_told = verdict_.culprit && reporter_.has_told(*verdict_.culprit);
  write_result(verdict_, outcome.records, plain_text(verdict_, facts));
  std::string text;
  if (plan_.personality.failure == Personality::Failure::kTorchrunSummary) {
    text = torchrun_summary(verdict_, outcome.records, facts_.program, read_own_account);
  }
  if (text.empty()) text = verdict_text(verdict_, facts);
  logs_->begin_last_words();
  if (!text.empty()) print_of_job(text);
  const Duration patience = guard_died_ ? Duration::zero() : console_patience(verdict_.end.kind);
  logs_->when_flushed(patience, [this](bool) { loop_.stop(); });
}

/// lrun itself cannot go on. Whoever asks later is not to believe that it was killed.
void NodeLauncher::leave_result_of(const std::exception& error) {
  Verdict verdict = judge({RunEnd::Kind::kLauncherFailed}, {});
  if (attempt_) verdict.restarts = attempt_->membership().attempt;
  write_result(verdict, supervised() ? attempt_->supervisor().outcome().records : std::vector<FailureRecord>(),
               message_line(Severity::kError, error.what()));
}

void NodeLauncher::write_result(const Verdict& verdict, const std::vector<FailureRecord>& records,
                                const std::string& text) {
  events_.run_ended(verdict);
  const Folder* const folder = folders_.run();
  if (folder == nullptr) return;
  const std::string hint =
      verdict.culprit ? hint_for(*verdict.culprit, facts_.python, plan_.setup.core_dumps) : std::string();
  const std::string json = result_json(plan_.run_id, verdict, records, text, hint);
  const int error = replace_file(*folder, "result.json", json, 0600);
  if (error != 0) sink().warn(fmt::format("no result.json: {}", std::generic_category().message(error)));
}

Verdict NodeLauncher::start_failed(const FailureRecord& record) {
  left_nothing_ = nothing_survives();
  Verdict verdict = judge({RunEnd::Kind::kStartFailed}, {record});
  verdict.restarts = record.attempt;
  RunFactsForText facts = text_facts(plan_, facts_.program, facts_.python, {}, colour());
  facts.interpreter = interpreter_of(facts_.start.from_here(facts_.start.executable.path));
  write_result(verdict, {record}, plain_text(verdict, facts));
  print_of_job(verdict_text(verdict, facts));
  if (const std::string problem = leave_error_file(environment_, verdict); !problem.empty()) sink().warn(problem);
  logs_->flush(kLastWordPatience);
  return verdict;
}

/// All launchers know it. Where each rank has one, that of rank 0 says it for all, as long as they hear each other.
bool NodeLauncher::speaks_for_job() const {
  const bool is_one_of_many = plan_.is_of_one_rank && job_ && job_->membership().self.node_rank != 0;
  return !is_one_of_many || job_->is_alone();
}

void NodeLauncher::print_of_job(const std::string& text) {
  if (speaks_for_job()) sink().print_of_job(text);
}

}  // namespace lrun::launcher
