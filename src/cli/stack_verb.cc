#include "base/event_loop.h"
#include "base/user_error.h"
#include "cli/diagnostics.h"
#include "cli/run_of_verb.h"
#include "cli/verbs.h"
#include "inspect/control_client.h"
#include "inspect/run_directory.h"
#include "inspect/run_status.h"
#include "inspect/stack_sampler.h"
#include "report/stack_text.h"
#include "verdict/judge.h"

namespace lrun {
namespace {

constexpr Duration kAnswerLimit(2000);

/// The workers of a run, those that have ended with the pid 0.
std::vector<RankProcess> processes_of(const RunEntry& run) {
  const ControlAnswer answer = ask_run(run.folder, "status", kAnswerLimit);
  const std::optional<RunStatus> status = run_status_from_json(answer.text);
  if (!status) {
    throw UserError("run '" + run.id + "' does not answer",
                    "name its processes: 'lrun stack --pids 4242,4243'; their pids are in '" +
                        (run.folder / "events.jsonl").string() + "'");
  }
  std::vector<RankProcess> processes;
  for (const WorkerStatus& worker : status->workers) {
    processes.push_back({worker.rank, worker.running ? worker.pid : 0});
  }
  return processes;
}

std::vector<StackSample> sample(const std::vector<RankProcess>& processes, const Environment& environment) {
  EventLoop loop;
  std::vector<StackSample> samples;
  StackSampler sampler(loop, find_stack_tools(environment.get("PATH").value_or("")), processes, {},
                       [&](std::vector<StackSample> all) {
                         samples = std::move(all);
                         loop.stop();
                       });
  loop.run();
  return samples;
}

}  // namespace

int stack_verb(const VerbRequest& request, const Environment& environment) {
  std::vector<RankProcess> processes = request.processes;
  if (processes.empty()) processes = processes_of(living_run(request.run, state_folder(environment), "lrun stack"));
  const std::vector<StackSample> samples = sample(processes, environment);
  return print(request.json ? stack_json(samples) : stack_text(samples)) ? 0 : kExitRefused;
}

}  // namespace lrun
