#include <exception>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/user_error.h"
#include "cli/diagnostics.h"
#include "cli/help.h"
#include "cli/launch.h"
#include "cli/parse_args.h"
#include "cluster/detect.h"
#include "cluster/program_facts.h"
#include "plan/make_plan.h"
#include "plan/show_plan.h"
#include "report/run_directory.h"
#include "verdict/judge.h"

namespace {

int print_or_fail(const std::string& text) { return lrun::print(text) ? 0 : lrun::kExitRefused; }

int plan_and_run(const lrun::LaunchRequest& request, const lrun::Environment& environment) {
  const auto allocation = lrun::detect_allocation(lrun::needs_gpus(request, environment), environment);
  const auto program = lrun::look_at_program(request.command.front(), environment);
  const lrun::LaunchPlan plan = lrun::make_plan(request, environment, allocation, program, lrun::make_run_id());
  for (const std::string& warning : plan.warnings) lrun::say(lrun::Severity::kWarning, warning);
  switch (request.dry_run) {
    case lrun::DryRun::kText:
      return print_or_fail(lrun::show_plan_text(plan, environment));
    case lrun::DryRun::kJson:
      return print_or_fail(lrun::show_plan_json(plan, environment));
    case lrun::DryRun::kNo:
      break;
  }
  return lrun::launch(plan, request, environment);
}

int run(const std::vector<std::string>& argv) {
  const lrun::Environment environment = lrun::Environment::of_this_process();
  const lrun::ParsedCommandLine parsed = lrun::parse_command_line(argv, environment);
  for (const std::string& warning : parsed.warnings) lrun::say(lrun::Severity::kWarning, warning);
  using Action = lrun::ParsedCommandLine::Action;
  switch (parsed.action) {
    case Action::kShortHelp:
      return print_or_fail(lrun::short_help());
    case Action::kLongHelp:
      return print_or_fail(lrun::long_help());
    case Action::kVersion:
      return print_or_fail(lrun::version_line());
    case Action::kLaunch:
      break;
  }
  return plan_and_run(parsed.request, environment);
}

}  // namespace

/// parse → detect → plan → run → report. Whatever cannot be done is told in one line, and lrun exits with 125.
int main(int argc, char** argv) {
  try {
    return run({argv, argv + argc});
  } catch (const lrun::UserError& error) {
    lrun::say(error);
  } catch (const std::exception& error) {
    lrun::say(lrun::Severity::kError, error.what());
  }
  return lrun::kExitRefused;
}
