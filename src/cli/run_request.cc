#include "cli/run_request.h"

#include "cli/diagnostics.h"
#include "cli/launch.h"
#include "cluster/program_facts.h"
#include "inspect/run_directory.h"
#include "plan/make_plan.h"
#include "plan/show_plan.h"
#include "plan/strategy_choice.h"
#include "verdict/judge.h"

namespace lrun {
namespace {

ProgramFacts program_facts(const LaunchRequest& request, const Environment& of_workers) {
  return look_at_program(request.command.front(), of_workers, request.setup.folder.value);
}

void tell_about(const LaunchPlan& plan) {
  if (!speaks_for_node(plan)) return;
  for (const std::string& warning : plan.warnings) say(Severity::kWarning, warning);
  for (const std::string& line : plan.notes) say(Severity::kNote, line);
}

}  // namespace

void check_for_all_nodes(const LaunchRequest& request, const Environment& of_workers) {
  check_program(request.strategy, request, program_facts(request, of_workers));
}

int run_request(const LaunchRequest& request, const Allocation& allocation, const Environment& own,
                const Environment& of_workers) {
  const ProgramFacts program = program_facts(request, of_workers);
  const LaunchPlan plan = make_plan(request, of_workers, allocation, program, make_run_id());
  tell_about(plan);
  if (request.dry_run == DryRun::kNo) return launch(plan, request, own);
  return print(show_plan(plan, of_workers, request.dry_run)) ? 0 : kExitRefused;
}

}  // namespace lrun
