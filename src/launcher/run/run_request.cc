#include "run/run_request.h"

#include <utility>
#include <vector>

#include "base/nearest.h"
#include "cli/misplaced_option.h"
#include "cluster/program_facts.h"
#include "inspect/run_directory.h"
#include "plan/make_plan.h"
#include "plan/show_plan.h"
#include "plan/strategy_choice.h"
#include "plan/worker_environment.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "run/launch.h"

namespace lrun::launcher {
namespace {

ProgramFacts program_facts(const LaunchRequest& request, const Environment& of_workers) {
  return look_at_program(request.command.front(), of_workers, request.setup.folder.value);
}

void tell_about(const LaunchPlan& plan) {
  for (const std::string& warning : plan.warnings) say(Severity::kWarning, warning);
  for (const std::string& line : plan.notes) say(Severity::kNote, line);
}

/// For somebody who has set RANK or MASTER_ADDR by hand.
void tell_what_is_replaced(const LaunchPlan& plan, const Environment& of_workers) {
  std::vector<std::string> replaced = replaced_variables(plan, of_workers);
  for (std::string& variable : replaced) variable = "'" + variable + "'";
  if (!replaced.empty()) say(Severity::kNote, "workers get this run's values in place of " + join_words(replaced));
}

}  // namespace

void check_for_all_nodes(const LaunchRequest& request, const Environment& of_workers) {
  check_program(request.strategy, request, program_facts(request, of_workers));
}

int run_request(const LaunchRequest& request, const Allocation& allocation, const Environment& own,
                const Environment& of_workers) {
  const ProgramFacts program = program_facts(request, of_workers);
  LaunchPlan plan = make_plan(request, of_workers, allocation, program, make_run_id());
  std::string misplaced =
      warn_about_misplaced_option(plan, request, program, program_reader(request.setup.folder.value));
  if (!misplaced.empty()) plan.warnings.push_back(std::move(misplaced));
  if (speaks_for_node(plan)) {
    tell_about(plan);
    if (request.verbosity > 0) tell_what_is_replaced(plan, of_workers);
  }
  if (request.dry_run == DryRun::kNo) return launch(plan, request, own);
  return print(show_plan(plan, of_workers, request.dry_run)) ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
