#include "run/run_node.h"

#include <optional>
#include <string>
#include <utility>

#include "logs/log_router.h"
#include "remote/step_outcome.h"
#include "run/console_sink.h"
#include "run/join_job.h"
#include "run/memory_copies.h"
#include "run/memory_monitor.h"
#include "run/run_record.h"
#include "run/worker_output.h"
#include "run/workers_store.h"

namespace lrun::launcher {

NodeRunEnd run_node(const LaunchPlan& plan, const Environment& environment, NodeRun run, EventLoop& loop,
                    const Guard& guard, const LauncherOutput& output) {
  LogRouter logs(loop, log_options(plan));
  ConsoleSink console(logs, output.sink.colour());
  // With a head its channel takes what lrun prints, else the console among the workers' lines.
  const LauncherOutput run_output{output.head != nullptr ? output.sink : console, output.head};
  std::optional<WorkersStore> store;
  if (Job* const job = run.job; job != nullptr) {
    store.emplace(plan, [job](const Membership& membership) { return job->store_for(membership); });
  } else {
    store.emplace(loop, plan, run.most_connections);
  }
  run.facts.job = run.job;
  RunRecord record(loop, plan, environment, run_output.sink);
  MemoryMonitor memory(loop, guard.memory(), plan.setup.memory, run_output.sink);
  std::optional<MemoryCopies> copies;
  if (run.copier != nullptr) run.facts.copies = &copies.emplace(loop, *run.copier, run_output.sink);
  NodeLauncher launcher(plan, {loop, environment, guard, *store, logs, record, run_output}, std::move(run.facts));
  Verdict verdict = launcher.run();
  const std::string token = outcome_token(environment);
  if (!token.empty() && launcher.node_rank() == 0) {
    output.sink.print_lines(outcome_line(token, launcher.round(), verdict.exit_code));
  }
  return {std::move(verdict), launcher.left_nothing()};
}

}  // namespace lrun::launcher
