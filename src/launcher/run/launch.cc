// In: a plan, and the request that it was made of. Out: a guarded launcher, and the exit code of lrun. Called by
// run_request().
#include "run/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/user_error.h"
#include "cluster/slurm.h"
#include "logs/terminal_text.h"
#include "plan/master_choice.h"
#include "plan/rendezvous_request.h"
#include "process/exit_codes.h"
#include "process/guard.h"
#include "process/launcher_heartbeat.h"
#include "process/memory_folder.h"
#include "process/process_limits.h"
#include "process/process_title.h"
#include "process/run_cgroup.h"
#include "report/parent_error_file.h"
#include "run/descriptor_need.h"
#include "run/join_job.h"
#include "run/notice_monitor.h"
#include "run/port_conflict.h"
#include "run/preflight.h"
#include "run/preload.h"
#include "run/program_file.h"
#include "run/run_in_job.h"
#include "run/run_node.h"
#include "run/start_failure.h"
#include "run/stop_with_mpirun.h"
#include "run/stop_with_srun.h"
#include "run/unread_stdin.h"
#include "run/wrong_program.h"

namespace lrun::launcher {
namespace {

/// The endpoint comes from what starts the job's launchers.
bool is_managed(const LaunchRequest& request) { return request.rendezvous.endpoint.source == Source::kScheduler; }

/// A job that can do without some nodes meets where one of them hosts the rendezvous: that one is no such node.
UserError with_need_of_host(const UserError& error, const LaunchPlan& plan) {
  const auto& rendezvous = plan.rendezvous;
  const bool is_host = rendezvous && rendezvous->hosting != RendezvousPlan::Hosting::kNever;
  if (!is_host || needs_all_nodes(*rendezvous)) return error;
  return {error.what(), error.hint() + "; no job begins without the node that hosts its rendezvous"};
}

/// Ends a node that cannot start its workers. Reports it to the other nodes, so that none waits. Where people read in
/// one place what all nodes print, node rank 0 prints it for a node whose report has arrived.
int end_before_start(const Verdict& verdict, const UserError& why, const LaunchPlan& plan, const LaunchRequest& request,
                     const Environment& environment, MessageSink& sink) {
  const UserError error = with_need_of_host(why, plan);
  const bool is_one_of_many = !speaks_for_job(plan);
  if (!is_one_of_many) sink.print_error(error);
  if (!plan.rendezvous) return verdict.exit_code;
  bool is_told = false;
  try {
    JoinRecord record = join_record_of(plan, request.command.front(), is_managed(request));
    describe_failure(verdict, error, record);
    is_told = report_failure(plan, record, environment, sink);
  } catch (const UserError&) {  // it does not know its own address
  }
  if (is_one_of_many && !is_told) sink.print_error(error);
  return verdict.exit_code;
}

/// A kernel without pidfds has no cgroup.kill either.
bool wants_cgroup(const PreparedStart& start, const Environment& environment) {
  return start.defaults.use_pidfds && environment.get("LRUN_NO_CGROUP") != "1";
}

MemoryFolder make_memory_folder(const LaunchPlan& plan, MessageSink& sink) {
  const Setting<MemoryLimit>& limit = plan.setup.memory;
  if (!limit.value.has_folder()) return {};
  MemoryFolder folder = MemoryFolder::make(plan.run_id);
  if (!folder && limit.given()) {
    const std::error_code error(errno, std::generic_category());
    sink.warn(fmt::format("'{}': no folder can be made in '/dev/shm': {}", limit.origin, error.message()));
  }
  return folder;
}

/// The machine is about to go before anything has begun.
int end_noticed(const NoticeMonitor& notice, const LaunchPlan& plan, Guard& guard, MessageSink& sink) {
  sink.note(fmt::format("{}; nothing was started", terminal_safe(notice.notice())));
  if (plan.notice.value.kind == NoticeSource::Kind::kFile) sink.hint("remove the file where it is left from before");
  guard.mark_end(SIGTERM, true);
  return exit_code_of_signal(SIGTERM);
}

int run_below_guard(const LaunchPlan& plan, const Environment& environment, NodeRun run, Guard& guard,
                    const LauncherOutput& output) {
  MessageSink& sink = output.sink;
  name_launcher(guard, plan);
  try {
    ::signal(SIGPIPE, SIG_IGN);  // a closed console is an event, not a death
    ::signal(SIGXFSZ, SIG_IGN);  // and so is a log file that may not grow
    EventLoop loop;
    std::optional<LauncherHeartbeat> heartbeat;
    if (plan.rendezvous) heartbeat.emplace(loop, plan.rendezvous->heartbeat, [&guard] { guard.note_heartbeat(); });
    const StopWithSrun stop_with_srun(loop, environment, guard, sink);
    const StopWithMpirun stop_with_mpirun(loop, environment, guard, sink);
    Preloaded preloaded = preload(loop, plan, run.facts.start, environment, guard, sink);
    if (preloaded.exit_code) return *preloaded.exit_code;
    run.facts.fork_server = std::move(preloaded.server);
    const std::unique_ptr<NoticeMonitor> notice = watch_for_notice(loop, plan, guard, sink);
    if (notice && !notice->notice().empty()) return end_noticed(*notice, plan, guard, sink);
    run.facts.notice = notice.get();
    if (plan.rendezvous) return run_in_job(plan, environment, std::move(run), loop, guard, output);
    const auto [verdict, left_nothing] = run_node(plan, environment, std::move(run), loop, guard, output);
    guard.mark_end(verdict.die_of_signal, left_nothing);
    return verdict.exit_code;
  } catch (const UserError& error) {
    sink.print_error(error);
    leave_error_file(environment, std::string_view(error.what()), sink);
  } catch (const std::system_error& error) {
    const bool taken = error.code() == std::errc::address_in_use;
    const PortConflict port =
        taken ? explain_port_conflict(plan, job_secret(environment), error.what()) : PortConflict();
    const std::string what = taken ? port.what : error.what();
    sink.error(what);
    leave_error_file(environment, std::string_view(what), sink);
    if (taken) sink.hint(port.hint);
    if (error.code() == std::errc::resource_unavailable_try_again) {
      sink.hint("the number of processes is limited: see 'ulimit -u' and the cgroup's pids.max");
    }
    if (error.code() == std::errc::file_too_large) {
      sink.hint("the size of files is limited: run 'ulimit -f unlimited' before lrun");
    }
  } catch (const std::exception& error) {
    sink.error(fmt::format("internal error: {}", error.what()));
    leave_error_file(environment, std::string_view(error.what()), sink);
  }
  return kExitRefused;
}

/// \param file  what is executed: PROGRAM, or the Python that runs it
void warn_of_program(const std::vector<std::string>& command, const std::filesystem::path& file, const LaunchPlan& plan,
                     const Environment& environment, MessageSink& sink) {
  const std::string& program = command.front();
  const bool is_executed = plan.argv.front() == program;
  for (const std::string& warning :
       {warn_of_launcher(command, plan.world_size),
        is_executed ? warn_of_file(program, file, plan.world_size, environment) : std::string()}) {
    if (!warning.empty()) sink.message_of_job(Severity::kWarning, warning);
  }
}

/// A run that ended well has something left to say where the end of one task does not end the step.
bool has_last_words(int code, const LaunchPlan& plan, const Environment& environment) {
  const bool may_lose_nodes = plan.rendezvous && !needs_all_nodes(*plan.rendezvous);
  return code != 0 || (may_lose_nodes && !outcome_token(environment).empty());
}

/// Checks the machine, then runs the plan. Returns only when nothing was started.
/// \throws UserError  the machine lacks something that workers need.
int launch_here(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment,
                const LauncherOutput& output) {
  const std::string& program = request.command.front();
  check_folder_of_srun(plan, environment);
  check_command(request, plan);
  PreparedStart start = prepare_start(plan, environment);
  if (const std::optional<ProgramProblem> problem = find_program_problem(start, plan, request)) {
    const Verdict verdict = verdict_of(*problem);
    leave_error_file(environment, verdict, output.sink);
    return end_before_start(verdict, program_error(*problem, request, plan), plan, request, environment, output.sink);
  }
  if (speaks_for_job(plan)) warn_of_program(request.command, start.executable.path, plan, environment, output.sink);
  check_log_folder(plan);
  check_metrics_file(plan);
  check_notice_file(plan, output.sink);
  if (const auto others = endpoint_of_others(request.rendezvous); others && !plan.rendezvous) {
    wait_for_others_at(*others, request.rendezvous.connect_timeout, output.sink);
  }
  const FileLimit limit = FileLimit::raise_to_hard();
  check_descriptors(limit, plan);
  const std::string python = plan.argv.front() != program ? start.executable.path : std::string();
  NodeRun run{.facts = {program, python, std::move(start), request.verbosity},
              .most_connections = most_connections(limit, plan),
              .is_managed = is_managed(request)};
  run.facts.maker_of_input_pipe = maker_of_input_pipe();
  RunCgroup cgroup = wants_cgroup(run.facts.start, environment) ? RunCgroup::make(plan.run_id) : RunCgroup();
  MemoryFolder memory = make_memory_folder(plan, output.sink);
  const int code =
      run_guarded(plan.stop_signals.numbers,
                  [&](Guard& guard) { return run_below_guard(plan, environment, std::move(run), guard, output); },
                  {std::move(cgroup), std::move(memory), plan.standard_input,
                   plan.rendezvous ? plan.rendezvous->heartbeat : Duration(0)});
  if (has_last_words(code, plan, environment)) let_srun_read(environment);
  ::_exit(code);  // nothing is buffered, and destroying the plan would only delay the caller
}

}  // namespace

int launch(const LaunchPlan& plan, const LaunchRequest& request, const Environment& environment,
           const LauncherOutput& output) {
  MessageSink& sink = output.sink;
  require_endpoint(plan, request, environment);
  hide_secrets();
  try {
    return launch_here(plan, request, environment, output);
  } catch (const UserError& error) {
    if (!plan.rendezvous) throw;
    return end_unstarted(error, plan, request, environment, sink);
  }
}

int end_unstarted(const UserError& why, const LaunchPlan& plan, const LaunchRequest& request,
                  const Environment& environment, MessageSink& sink) {
  leave_error_file(environment, std::string_view(why.what()), sink);
  const Verdict verdict = judge({.kind = RunEnd::Kind::kLauncherFailed, .who = why.what()}, {});
  return end_before_start(verdict, why, plan, request, environment, sink);
}

void let_srun_read(const Environment& environment) {
  constexpr std::chrono::milliseconds kLongestDelay(250);  // of Nagle's algorithm 200
  if (tasks_of_step(environment) > 1) std::this_thread::sleep_for(kLongestDelay);
}

}  // namespace lrun::launcher
