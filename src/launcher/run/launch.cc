#include "run/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/folder.h"
#include "base/nearest.h"
#include "base/user_error.h"
#include "cli/verb_table.h"
#include "cluster/slurm.h"
#include "plan/horovod_environment.h"
#include "plan/rendezvous_request.h"
#include "process/exit_codes.h"
#include "process/guard.h"
#include "process/launcher_heartbeat.h"
#include "process/process_limits.h"
#include "process/process_title.h"
#include "process/program_path.h"
#include "process/run_cgroup.h"
#include "remote/step_outcome.h"
#include "rendezvous/admission.h"
#include "report/parent_error_file.h"
#include "report/verdict_text.h"
#include "run/descriptor_need.h"
#include "run/end_facts.h"
#include "run/join_job.h"
#include "run/node_launcher.h"
#include "run/port_conflict.h"
#include "run/start_failure.h"
#include "run/stop_with_srun.h"
#include "run/unread_stdin.h"
#include "verdict/job_report.h"

namespace lrun::launcher {
namespace {

/// The parent's error file is a service to it: what goes wrong with it is a warning.
void leave_in_error_file(const Environment& environment, const auto& what, MessageSink& sink) {
  if (const std::string problem = leave_error_file(environment, what); !problem.empty()) {
    sink.warn(problem);
  }
}

/// The error that keeps the program from running, known before anything is started; 0 when there is none.
int program_error(const WorkerStart& start, const LaunchPlan& plan, const LaunchRequest& request) {
  if (!start.runs_program) return 0;
  if (start.executable.error_number != 0) return start.executable.error_number;
  const std::string& program = request.command.front();
  const bool python_script = plan.argv.front() != program && !request.module;
  return python_script && ::access(start.from_here(program).c_str(), F_OK) != 0 ? errno : 0;
}

/// A folder for logs that was asked for and cannot be had is known before anything is started.
void check_log_folder(const LaunchPlan& plan) {
  const std::string& folder = plan.log_dir.value;
  if (folder.empty() || folder == "/dev/null") return;
  std::error_code error;
  try {
    (void)Folder::make(folder);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) error = std::error_code(errno, std::generic_category());
  } catch (const std::system_error& refusal) {
    error = refusal.code();
  }
  if (!error) return;
  throw UserError(fmt::format("cannot write logs in '{}': {}", folder, error.message()),
                  "name a folder you may write to, or '/dev/null' for no log files");
}

/// The verb that was probably meant by a program that is nowhere.
std::string nearest_verb(const std::string& program, const LaunchPlan& plan) {
  if (!plan.personality.verbs || ::access(program.c_str(), F_OK) == 0) return {};
  if (program == "help" || program == "version") return "--" + program;
  if (program == "run" || program == "launch") return "PROGRAM";
  std::vector<std::string> verbs;
  for (const Verb& verb : verb_table()) verbs.emplace_back(verb.name);
  return nearest_word(program, verbs).value_or("");
}

/// The file that was probably meant by a program that is nowhere, as it would have to be typed.
std::string nearest_file(const std::filesystem::path& program, const LaunchPlan& plan) {
  constexpr std::size_t kMostFiles = 1000;
  if (!plan.setup.folder.value.empty()) return {};  // names count from there
  const std::filesystem::path folder = program.parent_path();
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? std::filesystem::path(".") : folder, error);
  for (; !error && entry != std::filesystem::directory_iterator() && names.size() < kMostFiles;
       entry.increment(error)) {
    std::error_code gone;
    if (entry->is_regular_file(gone)) names.push_back(entry->path().filename().string());
  }
  const std::optional<std::string> nearest = nearest_word(program.filename().string(), names);
  if (!nearest) return {};
  const bool as_it_is = !folder.empty() || nearest->ends_with(".py");
  return as_it_is ? (folder / *nearest).string() : "./" + *nearest;
}

/// \param typed  PROGRAM, also where the Python that was to run it is what is missing.
Verdict refuse_program(int error_number, const std::string& typed, bool given_to_python, const LaunchPlan& plan,
                       const Environment& environment, MessageSink& sink) {
  const std::string& program = given_to_python ? typed : plan.argv.front();
  FailureRecord record;
  record.ending = FailureRecord::Ending::kExecFailed;
  record.value = error_number;
  record.cause = Cause::kExecFailed;
  Verdict verdict = judge({RunEnd::Kind::kStartFailed}, {record});
  if (speaks_for_node(plan)) {
    const StartProblem problem = start_problem(record, {.program = program,
                                                        .nearest_verb = nearest_verb(program, plan),
                                                        .nearest_file = nearest_file(program, plan),
                                                        .script = program != typed ? typed : std::string(),
                                                        .given_to_python = given_to_python});
    sink.print_error(UserError(problem.what, problem.hint));
  }
  leave_in_error_file(environment, verdict, sink);
  return verdict;
}

/// Whoever starts the job's launchers says where they meet.
bool is_managed(const LaunchRequest& request) { return request.rendezvous.endpoint.source == Source::kScheduler; }

/// This node cannot start its workers, and has said why: the other nodes of its job are not to wait for it.
int end_before_start(const Verdict& verdict, const std::string& why, const LaunchPlan& plan,
                     const LaunchRequest& request, const Environment& environment, MessageSink& sink) {
  if (!plan.rendezvous) return verdict.exit_code;
  try {
    JoinRecord record = join_record_of(plan, request.command.front(), is_managed(request));
    describe_failure(verdict, why, record);
    tell_failure(plan, record, environment, sink);
  } catch (const UserError&) {  // it does not know its own address
  }
  return verdict.exit_code;
}

/// What has no pidfds has no cgroup.kill either.
bool wants_cgroup(const WorkerStart& start, const Environment& environment) {
  return start.defaults.use_pidfds && environment.get("LRUN_NO_CGROUP") != "1";
}

/// A spare's part in a job that did not need it. srun takes the highest of its tasks' codes: where nodes wait because
/// they were told to, the job's own is to be that.
int end_as_spare(const MeetingEnd& met, const LaunchPlan& plan, const Environment& environment, MessageSink& sink) {
  if (plan.rendezvous->spares > 0) {
    const std::string how = met.why_not.empty() ? "the job has succeeded" : "the job has ended: " + met.why_not;
    sink.note(fmt::format("node {} was a spare, and was not needed: {}", plan.nodes.front().name, how));
    return 0;
  }
  if (met.why_not.empty()) {
    sink.note("the job has succeeded; it did not need this node, which has run nothing");
    return 0;
  }
  const std::string what = "the job has ended: " + met.why_not;
  sink.error(what);
  leave_in_error_file(environment, std::string_view(what), sink);
  return kExitRefused;
}

/// The launchers of hosts that the user names were told where to meet, and so were those of a step.
const char* usual_hint(const LaunchPlan& plan, const Environment& environment, bool has_head) {
  if (plan.rendezvous->of_ranks || tasks_of_step(environment) == plan.num_nodes) {
    return "look at what the other tasks of the step said: each of them has to run this lrun";
  }
  return has_head ? kOtherPlaceHint : "start lrun on every node with the same '--num_nodes' and '--rdzv-endpoint'";
}

/// Another node cannot start its workers, and the job needs it.
int end_with_other(const std::string& report, const LaunchPlan& plan, const Environment& environment,
                   MessageSink& sink) {
  const Verdict verdict = failure_of_another_node(report);
  const std::string text = verdict_text(verdict, {.colour = sink.colour()});
  if (speaks_for_node(plan)) sink.print_of_job(text);
  leave_in_error_file(environment, verdict, sink);
  return verdict.exit_code;
}

int end_without_job(const MeetingEnd& met, const LaunchPlan& plan, Guard& guard, const Environment& environment,
                    const LauncherOutput& output) {
  MessageSink& sink = output.sink;
  guard.mark_end(met.signal_number, true);
  if (met.not_needed) return end_as_spare(met, plan, environment, sink);
  if (met.signal_number != 0) return exit_code_of_signal(met.signal_number);
  if (met.why_not.empty()) return kExitRefused;  // our guard was killed
  const std::string what = fmt::format("the {} did not meet: {}", unit_of(plan.rendezvous->of_ranks, 2), met.why_not);
  if (speaks_for_node(plan)) {
    sink.error(what);
    sink.hint(met.hint.empty() ? usual_hint(plan, environment, output.head != nullptr) : met.hint);
  }
  leave_in_error_file(environment, std::string_view(what), sink);
  return kExitRefused;
}

/// \return its verdict, and whether nothing is left of its workers.
std::pair<Verdict, bool> run_workers(const LaunchPlan& plan, const Environment& environment, NodeLauncher::Facts facts,
                                     EventLoop& loop, const Guard& guard, MessageSink& sink) {
  NodeLauncher run(plan, environment, std::move(facts), loop, guard);
  Verdict verdict = run.run();
  const std::string token = outcome_token(environment);
  if (!token.empty() && run.node_rank() == 0) sink.print_lines(outcome_line(token, run.round(), verdict.exit_code));
  return {std::move(verdict), run.left_nothing()};
}

/// What is known of all workers when the nodes have met. Each node tells it; of those that a head started it shows one.
void note_world(const LaunchPlan& placed, MessageSink& sink) {
  const std::string note = is_horovod(placed) && speaks_for_node(placed) ? horovod_note(placed.world_size) : "";
  if (!note.empty()) sink.message_of_job(Severity::kNote, note);
}

/// The launchers meet before any worker starts; the one that holds the meeting is the last to leave it.
int run_in_job(const LaunchPlan& plan, const Environment& environment, NodeLauncher::Facts facts, Guard& guard,
               const LauncherOutput& output) {
  EventLoop loop;
  const LauncherHeartbeat heartbeat(loop, plan.rendezvous->heartbeat, [&guard] { guard.note_heartbeat(); });
  const StopWithSrun end_with_srun(loop, environment, guard, output.sink);
  const std::string secret = job_secret(environment);
  Job job(loop, *plan.rendezvous, join_record_of(plan, facts.program, facts.is_managed), gather_reports,
          facts.most_connections, secret, etcd_user(environment));
  job.on_connection([&guard](int connection) { guard.hold(connection); });
  warn_of_strangers(job, secret, output.sink);
  const MeetingEnd met = meet(loop, job, plan, guard, output);
  if (!met.report.empty()) {
    const int code = end_with_other(met.report, plan, environment, output.sink);
    leave(loop, job, "", plan, guard, output.sink);
    guard.mark_end(0, true);
    return code;
  }
  if (!met.membership) return end_without_job(met, plan, guard, environment, output);
  if (output.head != nullptr) output.head->send_begun();
  const LaunchPlan placed = place(plan, *met.membership);
  note_world(placed, output.sink);
  facts.job = &job;
  facts.membership = *met.membership;
  try {
    const auto [verdict, left_nothing] = run_workers(placed, environment, std::move(facts), loop, guard, output.sink);
    const bool repeated = verdict.end.kind == RunEnd::Kind::kInterrupted && repeats_term(environment);
    leave(loop, job, what_became_of_job(verdict), plan, guard, output.sink, repeated ? SIGTERM : 0);
    guard.mark_end(verdict.die_of_signal, left_nothing);
    return verdict.exit_code;
  } catch (...) {
    leave(loop, job, "a launcher of it failed", plan, guard, output.sink);
    throw;
  }
}

int run_below_guard(const LaunchPlan& plan, const Environment& environment, NodeLauncher::Facts facts, Guard& guard,
                    const LauncherOutput& output) {
  MessageSink& sink = output.sink;
  set_process_title(fmt::format("{} of process {}, run {}", kLauncherName, guard.pid(), plan.run_id));
  try {
    ::signal(SIGPIPE, SIG_IGN);  // a closed console is an event, not a death
    ::signal(SIGXFSZ, SIG_IGN);  // and so is a log file that may not grow
    if (plan.rendezvous) return run_in_job(plan, environment, std::move(facts), guard, output);
    EventLoop loop;
    const auto [verdict, left_nothing] = run_workers(plan, environment, std::move(facts), loop, guard, sink);
    guard.mark_end(verdict.die_of_signal, left_nothing);
    return verdict.exit_code;
  } catch (const UserError& error) {
    sink.print_error(error);
    leave_in_error_file(environment, std::string_view(error.what()), sink);
  } catch (const std::system_error& error) {
    const bool taken = error.code() == std::errc::address_in_use;
    const PortConflict port = taken ? explain_port_conflict(plan, job_secret(environment)) : PortConflict();
    const std::string what = error.what() + port.why;
    sink.error(what);
    leave_in_error_file(environment, std::string_view(what), sink);
    if (taken) sink.hint(port.hint);
    if (error.code() == std::errc::resource_unavailable_try_again) {
      sink.hint("the number of processes is limited: see 'ulimit -u' and the cgroup's pids.max");
    }
  } catch (const std::exception& error) {
    sink.error(fmt::format("internal error: {}", error.what()));
    leave_in_error_file(environment, std::string_view(error.what()), sink);
  }
  return kExitRefused;
}

/// srun reads no further in the output of a step when its last task has ended and one of them was killed, and a line
/// that is sent soon after another one waits until TCP has heard of that one, 200 ms at most (Nagle's algorithm,
/// delayed acknowledgement). Without this the verdict of a job that lost a node, and the code that watch_srun_step()
/// waits for, were often left unread.
void let_srun_read(int code, const Environment& environment) {
  constexpr std::chrono::milliseconds kLongestDelay(250);
  const bool has_last_words = code != 0 || !outcome_token(environment).empty();
  if (has_last_words && tasks_of_step(environment) > 1) std::this_thread::sleep_for(kLongestDelay);
}

/// \throws UserError  something that workers need is missing here.
int launch_here(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment,
                const LauncherOutput& output) {
  const std::string& program = request.command.front();
  WorkerStart start = prepare_start(plan, environment);
  if (const int error_number = program_error(start, plan, request); error_number != 0) {
    const bool to_python = start.executable.error_number == 0;
    const Verdict verdict = refuse_program(error_number, program, to_python, plan, environment, output.sink);
    return end_before_start(verdict, fmt::format("cannot run '{}': {}", program, std::strerror(error_number)), plan,
                            request, environment, output.sink);
  }
  check_log_folder(plan);
  if (const auto others = endpoint_of_others(request.rendezvous); others && !plan.rendezvous) {
    wait_for_others_at(*others, request.rendezvous.connect_timeout, output.sink);
  }
  const FileLimit limit = FileLimit::raise_to_hard();
  check_descriptors(limit, plan);
  const std::string python = plan.argv.front() != program ? start.executable.path : std::string();
  NodeLauncher::Facts facts{program, python, std::move(start), request.verbosity, most_connections(limit, plan)};
  facts.is_managed = is_managed(request);
  facts.maker_of_input_pipe = maker_of_input_pipe();
  facts.head = output.head;
  RunCgroup cgroup = wants_cgroup(facts.start, environment) ? RunCgroup::make(plan.run_id) : RunCgroup();
  const int code =
      run_guarded(plan.stop_signals.numbers,
                  [&](Guard& guard) { return run_below_guard(plan, environment, std::move(facts), guard, output); },
                  {std::move(cgroup), plan.standard_input, plan.rendezvous ? plan.rendezvous->heartbeat : Duration(0)});
  let_srun_read(code, environment);
  ::_exit(code);  // nothing is buffered, and somebody waits: the plan need not be taken apart before
}

}  // namespace

int launch(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment,
           const LauncherOutput& output) {
  MessageSink& sink = output.sink;
  check_meeting_place(plan);
  hide_secrets();
  try {
    return launch_here(plan, request, environment, output);
  } catch (const UserError& error) {
    if (!plan.rendezvous) throw;
    sink.print_error(error);
    leave_in_error_file(environment, std::string_view(error.what()), sink);
    const Verdict verdict = judge({.kind = RunEnd::Kind::kLauncherFailed, .who = error.what()}, {});
    return end_before_start(verdict, error.what(), plan, request, environment, sink);
  }
}

}  // namespace lrun::launcher
