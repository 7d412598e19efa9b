#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/event_loop.h"
#include "base/user_error.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "inspect/stack_sampler.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/stack_text.h"

namespace lrun::launcher {
namespace {

/// The launcher may be what hangs: its events tell whom it started last.
std::vector<RankProcess> last_known_processes(const RunEntry& run, MessageSink& sink) {
  const std::optional<Timeline> timeline = read_run(run).timeline;
  if (!timeline || timeline->workers.empty()) {
    throw UserError("run '" + run.id + "' does not answer", "name its processes: 'lrun stack --pids 4242,4243'");
  }
  sink.warn("run '" + run.id + "' does not answer: these are the workers that its events tell of");
  std::vector<RankProcess> processes;
  for (const WorkerSpan& worker : timeline->last_workers()) {
    processes.push_back({worker.rank, worker.ended_ms == 0 ? worker.pid : 0});
  }
  return processes;
}

/// The workers of a run on this host, those that have ended with the pid 0.
std::vector<RankProcess> processes_of(const RunEntry& run, MessageSink& sink) {
  std::vector<RankProcess> processes;
  for (const LivingLauncher& launcher : ask_launchers(run)) {
    if (launcher.is_elsewhere) continue;
    if (!launcher.status) {
      RunEntry silent = run;
      silent.parts = {launcher.folder};
      const std::vector<RankProcess> known = last_known_processes(silent, sink);
      processes.insert(processes.end(), known.begin(), known.end());
      continue;
    }
    for (const WorkerStatus& worker : launcher.status->workers) {
      processes.push_back({worker.rank, worker.running ? worker.pid : 0});
    }
  }
  if (processes.empty()) {
    throw UserError("run '" + run.id + "' has no launcher on this host", "'lrun stack' looks at processes of its host");
  }
  return processes;
}

std::vector<StackSample> sample(const std::vector<RankProcess>& processes, bool brief, const Environment& environment) {
  constexpr StackSampler::Limits kBrief{.tool = Duration(2000), .all = Duration(3000), .native_too = false};
  EventLoop loop;
  std::vector<StackSample> samples;
  StackSampler sampler(loop, find_stack_tools(environment.get("PATH").value_or("")), processes,
                       brief ? kBrief : StackSampler::Limits(), [&](std::vector<StackSample> all) {
                         samples = std::move(all);
                         loop.stop();
                       });
  loop.run();
  return samples;
}

void refuse_when_none_lives(const std::vector<RankProcess>& processes) {
  const auto lives = [](const RankProcess& process) {
    return process.pid > 0 && (::kill(process.pid, 0) == 0 || errno != ESRCH);
  };
  if (std::any_of(processes.begin(), processes.end(), lives)) return;
  throw UserError(processes.size() == 1 ? "there is no process " + std::to_string(processes.front().pid)
                                        : "none of the processes of '--pids' is there",
                  "'lrun status' lists what runs");
}

}  // namespace

int stack_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  std::vector<RankProcess> processes = request.processes;
  if (!processes.empty()) refuse_when_none_lives(processes);
  if (processes.empty())
    processes = processes_of(living_run(request.run, state_folder(environment), "lrun stack"), sink);
  const std::vector<StackSample> samples = sample(processes, request.brief, environment);
  const std::string text = request.json    ? stack_json(samples)
                           : request.brief ? stacks_in_a_sentence(fold_stacks(samples)) + "\n"
                                           : stack_text(samples);
  return print_to_stdout(text, sink) ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
