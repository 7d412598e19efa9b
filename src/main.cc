// In: argv and the environment. Out: the exit code. Reads the command line, and runs a verb, starts launchers on other
// hosts or is the launcher of this one.
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/fd.h"
#include "base/user_error.h"
#include "cli/help.h"
#include "cli/parse_args.h"
#include "cli/print_config.h"
#include "cli/verb_table.h"
#include "cluster/detect.h"
#include "cluster/local_host.h"
#include "cluster/mpi_job.h"
#include "cluster/slurm.h"
#include "commands/verbs.h"
#include "multihost/host_agent.h"
#include "multihost/named_hosts.h"
#include "multihost/relay_agent.h"
#include "multihost/start_on_hosts.h"
#include "multihost/start_through_srun.h"
#include "plan/job_place.h"
#include "plan/questions.h"
#include "plan/task_place.h"
#include "process/exit_codes.h"
#include "process/process_title.h"
#include "remote/srun_watch.h"
#include "remote/ssh.h"
#include "report/diagnostics.h"
#include "report/parent_error_file.h"
#include "run/join_job.h"
#include "run/launch.h"
#include "run/run_request.h"
#include "version_text.h"

namespace lrun::launcher {
namespace {

int answer_with(const std::string& text, MessageSink& sink) { return print_to_stdout(text, sink) ? 0 : kExitRefused; }

/// The words of the line alone are wrong: hosts may differ in variables and files, and verbs are typed on one of them.
bool is_in_all_lines(const std::vector<std::string>& argv, const UserError& found) {
  if (argv.size() > 1 && find_verb(argv[1]) != nullptr) return false;
  try {
    (void)parse_command_line(argv, Environment(), [](const std::string&) { return FileText(); });
  } catch (const UserError& error) {
    return std::string_view(error.what()) == found.what();
  }
  return false;
}

/// Whether the first task says what all of them find. 'srun --multi-prog' gives each task a line of its own and does
/// not tell it: where the first one is up, that one's line is right. Tasks of mpirun may differ in their environments:
/// where the first one fails, mpirun ends the others while they wait here.
bool is_told_by_first_task(const Environment& environment, const ErrorOfAllTasks& error) {
  constexpr Duration kToStart(2000);
  if (!is_later_task(environment)) return false;
  if (srun_place(environment)) return true;  // lrun has started srun, with one line
  try {
    if (error.may_be_of_host() && is_first_mpi_task_of_host(environment)) {
      std::this_thread::sleep_for(kToStart);
      return false;
    }
    const std::optional<SlurmStep> step = slurm_step(environment);
    const JobPlace place = step ? job_place_of(*step) : JobPlace();
    return !step || wait_for_server({place.host, place.port}, kToStart);
  } catch (const UserError&) {
    return true;
  }
}

/// \throws UserError, ErrorOfAllTasks
ParsedCommandLine parse(const std::vector<std::string>& argv, const Environment& environment) {
  try {
    return parse_command_line(argv, environment, read_file);
  } catch (const UserError& error) {
    if (is_in_all_lines(argv, error)) throw ErrorOfAllTasks(error);
    throw;
  }
}

/// parse → detect → plan → run → report
int run(const std::vector<std::string>& argv, MessageSink& sink) {
  fill_standard_descriptors();
  if (argv.size() == 2 && argv.back() == kNodeWord) return serve_node();
  if (argv.size() == 2 && argv.back() == kRelayWord) return serve_relay();
  const Environment environment = Environment::of_this_process();
  const ParsedCommandLine parsed = parse(argv, environment);
  const bool has_messages = !parsed.warnings.empty() || !parsed.note.empty();
  if (has_messages && !is_later_task(environment) && !srun_place(environment)) {  // else srun's starter did
    for (const std::string& warning : parsed.warnings) sink.warn(warning);
    if (!parsed.note.empty()) sink.note(parsed.note);
  }
  if (parsed.action == ParsedCommandLine::Action::kVerb) return run_verb(parsed.verb, environment, sink);
  if (parsed.action == ParsedCommandLine::Action::kPrintConfig) return answer_with(config_text(parsed.settings), sink);
  if (parsed.action == ParsedCommandLine::Action::kVersion) return answer_with(version_text(), sink);
  if (parsed.action != ParsedCommandLine::Action::kLaunch) return answer_with(help_text(parsed.action), sink);

  const std::vector<Host> hosts = named_hosts(parsed.request, environment);
  if (!hosts.empty()) return run_on_hosts(parsed, hosts, environment, sink);
  const Environment of_workers = changed(environment, parsed.request.setup.environment);
  Allocation allocation = detect_allocation(questions_of(parsed.request, of_workers), of_workers);
  select_devices_here(parsed.request, allocation);
  const int tasks = tasks_asked_per_node(of_workers);
  const LaunchRequest request = placed(with_tasks_asked(parsed.request, allocation, tasks), allocation);
  const std::string place = describe_place(request, allocation);
  if (request.verbosity > 0 && !place.empty()) sink.note(place);
  const std::string unused = note_of_unused_tasks(request, allocation, tasks_asked_in_all(of_workers));
  if (!unused.empty()) sink.note(unused);
  const int nodes = nodes_to_start(request, allocation);
  if (nodes > 0 && request.dry_run == DryRun::kNo) {
    check_for_all_nodes(request, of_workers);
    return start_through_srun(nodes, argv, request, allocation, environment, sink);
  }
  return run_request(request, allocation, environment, of_workers, {.sink = sink});
}

}  // namespace
}  // namespace lrun::launcher

/// An error is one line on stderr and exit code 125.
int main(int argc, char** argv) {
  lrun::remember_command_line(argc, argv);
  lrun::launcher::StderrSink stderr_sink;
  lrun::launcher::MessageSink& sink = stderr_sink;
  try {
    return lrun::launcher::run({argv, argv + argc}, sink);
  } catch (const lrun::launcher::ErrorOfAllTasks& error) {
    const lrun::Environment environment = lrun::Environment::of_this_process();
    if (!lrun::launcher::is_told_by_first_task(environment, error)) {
      const bool is_of_mpi = lrun::launcher::is_later_mpi_task(environment).value_or(false);
      const std::string host = is_of_mpi ? lrun::launcher::own_host_name() + ": " : "";
      sink.print_error({host + error.what(), error.hint()});
    }
    lrun::launcher::leave_error_file(environment, std::string_view(error.what()), sink);
  } catch (const lrun::UserError& error) {
    sink.print_error(error);
    lrun::launcher::leave_error_file(lrun::Environment::of_this_process(), std::string_view(error.what()), sink);
  } catch (const std::exception& error) {
    sink.error(error.what());
  }
  lrun::launcher::let_srun_read(lrun::Environment::of_this_process());
  return lrun::kExitRefused;
}
