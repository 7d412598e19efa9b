// In: a run, or pids. Out: where its ranks are, on stdout. The launchers of a job look at their own ranks, wherever
// they are; other processes are looked at from here. run_verb() calls it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <set>
#include <utility>

#include "base/event_loop.h"
#include "base/nearest.h"
#include "base/user_error.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "inspect/run_directory.h"
#include "inspect/stack_sampler.h"
#include "logs/terminal_text.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/stack_text.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

constexpr Duration kLimit(39'000);  // a launcher waits 36 seconds for others
constexpr Duration kBriefLimit(8000);

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

/// The workers of these launchers of a run on this host, those that have ended with the pid 0.
std::vector<RankProcess> processes_of(const RunEntry& run, const std::vector<LivingLauncher>& launchers,
                                      MessageSink& sink) {
  std::vector<RankProcess> processes;
  for (const LivingLauncher& launcher : launchers) {
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

/// '2 ranks of 'b' not shown: …'. Empty: all are there.
std::string missing_text(const LauncherStacks& stacks) {
  const int missing = stacks.ranks - static_cast<int>(stacks.samples.size());
  if (missing <= 0) return {};
  const std::string why = stacks.problem.empty() ? "its answer was cut" : terminal_safe(stacks.problem);
  return fmt::format("{} of '{}' not shown: {}", counted(missing, "rank"), terminal_safe(stacks.host), why);
}

std::vector<StackSample> sample(const std::vector<RankProcess>& processes, bool brief, const Environment& environment) {
  constexpr StackSampler::Limits kBrief{.tool = Duration(2000), .all = Duration(3000), .native_too = false};
  StackSampler::Limits limits = brief ? kBrief : StackSampler::Limits();
  const std::optional<std::string> path = environment.get("PATH");
  limits.reads_natives = path.has_value();  // stack_request() leaves it out for a look that stops nothing
  EventLoop loop;
  std::vector<StackSample> samples;
  StackSampler sampler(loop, path ? find_stack_tools(*path) : StackTools(), processes, limits,
                       [&](std::vector<StackSample> all) {
                         samples = std::move(all);
                         loop.stop();
                       });
  loop.run();
  return samples;
}

/// Every launcher of a job looks at its own ranks. Those that do not answer are named.
std::vector<StackSample> samples_of_job(const LivingLauncher& speaker, bool brief, MessageSink& sink) {
  std::vector<StackSample> samples;
  std::set<std::string> told;
  std::size_t answered = 0;
  for (const std::string& answer :
       ask_job(speaker, brief ? std::string(kBriefStackWords) : "stack", brief ? kBriefLimit : kLimit)) {
    std::optional<LauncherStacks> stacks = launcher_stacks_from_json(answer);
    if (!stacks) continue;
    ++answered;
    told.insert(stacks->host);
    if (const std::string missing = missing_text(*stacks); !missing.empty()) sink.note(missing);
    std::move(stacks->samples.begin(), stacks->samples.end(), std::back_inserter(samples));
  }
  for (const HostStatus& host : speaker.status->hosts) {
    if (told.contains(host.name)) continue;
    sink.note(host.state == kHostRuns ? fmt::format("ranks of '{}' not shown: it did not answer in time", host.name)
                                      : fmt::format("ranks of '{}' not shown: {}", host.name, host.state));
  }
  const auto nodes = static_cast<std::size_t>(speaker.status->nodes);
  if (speaker.status->hosts.empty() && nodes > answered) {
    sink.note(
        fmt::format("ranks of {} not shown, which did not answer in time", counted(nodes - answered, "launcher")));
  }
  std::sort(samples.begin(), samples.end(), [](const auto& one, const auto& other) { return one.rank < other.rank; });
  return samples;
}

/// No worker is there, and those of before did not end the run.
void note_pause(const std::vector<LivingLauncher>& launchers, MessageSink& sink) {
  const auto pauses = [](const LivingLauncher& launcher) {
    return launcher.status && (launcher.status->phase == "between_rounds" || launcher.status->phase == "backing_off");
  };
  const auto found = std::find_if(launchers.begin(), launchers.end(), pauses);
  if (found != launchers.end()) sink.note(fmt::format("the run is {}", phase_text(*found->status)));
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

/// Somebody who waits at a terminal would take the time that gdb needs for the symbols of LibTorch for a hang.
void note_duration(const VerbRequest& request, MessageSink& sink) {
  if (request.brief || ::isatty(STDERR_FILENO) != 1) return;
  sink.note("looking at every rank, for up to 39 seconds; 'lrun stack --brief' takes 8 at most");
}

}  // namespace

int stack_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  std::vector<StackSample> samples;
  if (!request.processes.empty()) {
    refuse_when_none_lives(request.processes);
    note_duration(request, sink);
    samples = sample(request.processes, request.brief, environment);
  } else {
    const RunEntry run = living_run(request.run, state_folder(environment), "lrun stack");
    if (run.waits && !request.json) return print_to_stdout(text_of_waiting(run), sink) ? 0 : kExitRefused;
    if (run.waits) return print_to_stdout(stack_json({}), sink) ? 0 : kExitRefused;
    note_duration(request, sink);
    const std::vector<LivingLauncher> launchers = ask_launchers(run);
    const LivingLauncher* const speaker = speaker_of(launchers);
    note_pause(launchers, sink);
    samples = speaker != nullptr ? samples_of_job(*speaker, request.brief, sink)
                                 : sample(processes_of(run, launchers, sink), request.brief, environment);
  }
  const std::string text = request.json    ? stack_json(samples)
                           : request.brief ? stacks_in_a_sentence(fold_stacks(samples)) + "\n"
                                           : stack_text(samples);
  return print_to_stdout(text, sink) ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
