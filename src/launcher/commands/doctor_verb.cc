#include "cli/environment_values.h"
#include "cluster/python_choice.h"
#include "commands/verbs.h"
#include "inspect/judge_machine.h"
#include "inspect/read_machine.h"
#include "process/exit_codes.h"
#include "process/process_limits.h"
#include "report/diagnostics.h"
#include "report/doctor_text.h"

namespace lrun::launcher {
namespace {

/// The settings of a run that helpers need: the command that reaches hosts, and the Python of programs.
LaunchRequest settings_of(const Environment& environment) {
  LaunchRequest request;
  for (const GivenValue& given : values_from_environment(environment)) {
    if (given.flag->name == "ssh" || given.flag->name == "python") given.flag->apply(given, request);
  }
  return request;
}

}  // namespace

int doctor_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  constexpr int kUnhealthy = 1;
  (void)FileLimit::raise_to_hard();  // for an ssh a host
  const LaunchRequest settings = settings_of(environment);
  const PythonChoice python = choose_python_here({settings.python.value, settings.python.origin}, environment);
  const MachineFacts facts = read_machine(request.hosts, settings.ssh.value, python, environment);
  const std::vector<Finding> findings = judge_machine(facts);
  const bool printed = print_to_stdout(
      request.json ? doctor_json(facts, findings) : doctor_text(facts, findings, request.verbose), sink);
  if (!printed) return kExitRefused;
  return is_healthy(findings) ? 0 : kUnhealthy;
}

}  // namespace lrun::launcher
