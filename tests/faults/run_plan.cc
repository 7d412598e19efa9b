#include "faults/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <utility>

#include "faults/chance.h"
#include "faults/lrun_faults.h"
#include "faults/worker_lives.h"

namespace lrun::test {
namespace {

using std::chrono::milliseconds;
using Target = Deed::Target;

RunPlan worker_fault(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "a worker fails");
  const int culprit = chance.below(plan.world_size);
  const Ending ending = random_ending(chance);
  const std::string before = prelude(chance);
  const bool at_once = chance.percent(35);
  // A worker that waits for a rendezvous that never completes is an equally good bystander.
  const std::string when = at_once ? "" : fmt::format("meet,sleep:{},", chance.below(30));
  // The rendezvous needs descriptors, so they are used up afterwards.
  script_of(plan, culprit) = before == "files," ? when + before + ending.step : before + when + ending.step;
  blame(plan, culprit, ending);
  return plan;
}

/// Others lose their connection to the culprit and fail in the moment it dies, or a little later and without a word.
RunPlan fault_with_victims(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "a worker fails, and others with it", 2, false);
  const int culprit = chance.below(plan.world_size);
  for (std::string& script : plan.scripts) {
    if (chance.percent(60)) {
      script = chance.percent(50) ? "meet,follow" : fmt::format("ignore,meet,outlive:{},exit:9", chance.between(3, 9));
    }
  }
  const Ending ending = random_ending(chance);
  script_of(plan, culprit) = fmt::format("hold,meet,sleep:{},", chance.below(20)) + ending.step;
  blame(plan, culprit, ending);
  return plan;
}

RunPlan killed_from_outside(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "a worker is killed from outside");
  const int culprit = chance.below(plan.world_size);
  const int number = ending_signal(chance);
  script_of(plan, culprit) = chance.percent(30) ? "child:session,meet,wait" : "meet,wait";
  plan.deeds = {{Target::kWorker, culprit, number, milliseconds(chance.below(20))}};
  blame(plan, culprit, {"", "signaled", number});
  return plan;
}

/// A launcher that was held up sees several ends at once, and must still know which was first.
RunPlan lrun_stands_still(Chance& chance) {
  RunPlan plan = fault_with_victims(chance);
  plan.kind = "lrun stands still while a worker fails";
  plan.sees_ends_together = true;
  std::string& script = script_of(plan, plan.expected.culprit);
  script.replace(0, script.rfind(','), fmt::format("hold,meet,sleep:{}", chance.between(20, 40)));
  const Target target = chance.percent(25) ? Target::kGuard : Target::kLauncher;
  plan.deeds = {{target, 0, SIGSTOP, milliseconds(0)}, {target, 0, SIGCONT, milliseconds(chance.between(50, 100))}};
  return plan;
}

RunPlan no_program(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "the program cannot be executed");
  struct Case {
    std::string program;
    int code;
    std::string says;
  };
  static const std::vector<Case> kCases{{"./no-such-program", 127, "cannot run './no-such-program': No such file"},
                                        {"no-such-program-on-path", 127, "cannot run 'no-such-program-on-path'"},
                                        {"/tmp", 126, "cannot run '/tmp': Is a directory"},
                                        {"/etc/passwd", 126, "cannot run '/etc/passwd': Permission denied"},
                                        {"@/bad-interpreter", 127, "its first line names '/no/such/interpreter'"},
                                        {"@/not-a-program", 126, "Exec format error"}};
  const Case chosen = chance.one_of(kCases);
  plan.program = chosen.program;
  plan.expected.exit_code = chosen.code;
  plan.expected.says = chosen.says;
  plan.expected.reason = "start_failed";
  plan.expected.may_have_no_run = true;
  return plan;
}

/// Of each worker: a pidfd, a connection, and a pipe and a file for each stream that passes through lrun.
int descriptors_of_worker(const RunPlan& plan) {
  const auto has = [&](const char* word) { return std::ranges::find(plan.options, word) != plan.options.end(); };
  if (has("-r")) return 2;
  return has("/dev/null") ? 4 : 6;
}

/// These and 48 are documented to be enough: with that many everything must work, with fewer lrun refuses.
RunPlan few_descriptors(Chance& chance) {
  RunPlan plan = worker_fault(chance);
  plan.file_limit = descriptors_of_worker(plan) * plan.world_size + 48;
  plan.kind = "a worker fails, and lrun has hardly any descriptors";
  if (chance.percent(50)) return plan;
  plan.kind = "too few descriptors";
  plan.file_limit -= chance.between(1, 8);
  plan.expected = {.exit_code = 125, .may_have_no_run = true, .says = "file descriptors and the hard limit is"};
  return plan;
}

RunPlan small_files(Chance& chance) {
  RunPlan plan = worker_fault(chance);
  plan.kind = "a worker fails, and no file may grow beyond some kilobytes";
  // A worker that writes its file itself would die of SIGXFSZ, and rightly so.
  plan.options.resize(4);
  plan.file_size_limit = chance.between(65'536, 131'072);
  return plan;
}

/// Every attempt fails in another way (the same twice would not be repeated), but the last one may be well.
RunPlan restarted(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "a worker fails, and all are started again", 1, false);
  plan.counts_descriptors = chance.percent(50);
  if (plan.counts_descriptors) std::fill(plan.scripts.begin(), plan.scripts.end(), "meet,wait");
  const std::vector<std::string> lives = plan.scripts;
  plan.scripts.assign(lives.size(), "");
  const int failures = chance.between(1, 3);
  const bool ends_well = chance.percent(50);
  for (int attempt = 0; attempt < failures; ++attempt) {
    const int culprit = chance.below(plan.world_size);
    const int code = 10 + 20 * attempt + chance.below(20);
    for (std::size_t rank = 0; rank < lives.size(); ++rank) {
      const bool counts = plan.counts_descriptors && rank == 0;
      std::string script = lives[rank];
      if (static_cast<int>(rank) == culprit) script = fmt::format("meet,sleep:{},exit:{}", counts ? 0 : 50, code);
      if (counts) script.insert(script.find(',') + 1, "count,");
      add_attempt(plan.scripts[rank], script);
    }
    blame(plan, culprit, {"", "exited", code});
  }
  if (ends_well) {
    for (std::string& scripts : plan.scripts) add_attempt(scripts, "meet,exit:0");
    plan.expected = {.exit_code = 0, .reason = "succeeded"};
  }
  const int restarts = ends_well ? failures : failures - 1;
  plan.options.insert(plan.options.end(), {"--max-restarts", std::to_string(restarts), "--restart-backoff", "10ms"});
  return plan;
}

/// The run's folder is removed, and the run goes on without it.
RunPlan folder_lost(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "a worker fails in a run whose folder was removed");
  const int culprit = chance.below(plan.world_size);
  const Ending ending = random_ending(chance);
  script_of(plan, culprit) = fmt::format("meet,sleep:{},print:10000,{}", chance.between(10, 40), ending.step);
  plan.deeds = {{Target::kRunFolder, 0, 0, milliseconds(chance.below(10))}};
  blame(plan, culprit, ending);
  plan.expected.reason = "";
  plan.expected.may_have_no_run = true;
  return plan;
}

RunPlan success(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "all is well");
  static const std::vector<std::string> kLives{"ready,exit:0",
                                               "meet,exit:0",
                                               "print:200000,meet,exit:0",
                                               "line:300001,ready,exit:0",
                                               "close,meet,exit:0",
                                               "child:session,ready,exit:0",
                                               "leaderless,meet,exit:0"};
  for (std::string& script : plan.scripts) script = chance.one_of(kLives);
  plan.expected.exit_code = 0;
  plan.expected.reason = "succeeded";
  return plan;
}

}  // namespace

RunPlan make_run_plan(std::uint64_t seed, int number) {
  Chance chance(seed, number);
  static const std::vector<std::pair<int, std::function<RunPlan(Chance&)>>> kKinds{
      {30, worker_fault},
      {10, fault_with_victims},
      {10, killed_from_outside},
      {5, stopped_worker},
      {10, signal_to_lrun},
      {6, guard_killed},
      {5, launcher_killed},
      {2, both_killed},
      {4, one_stopped},
      {6, lrun_stands_still},
      {3, console_closed},
      {3, time_is_up},
      {3, no_program},
      {4, few_descriptors},
      {3, small_files},
      {8, restarted},
      {6, interrupted_restarts},
      {3, folder_lost},
      {10, anything},
      {4, success},
  };
  int total = 0;
  for (const auto& [share, make] : kKinds) total += share;
  int chosen = chance.below(total);
  for (const auto& [share, make] : kKinds) {
    if (chosen < share) return make(chance);
    chosen -= share;
  }
  return {};
}

std::string to_text(const RunPlan& plan) {
  std::string text = plan.kind + "\n  lrun " + fmt::format("{}", fmt::join(plan.options, " "));
  text += " -- " + (plan.program.empty() ? std::string("fault_actor") : plan.program);
  for (const std::string& script : plan.scripts) text += fmt::format(" '{}'", script);
  static const std::vector<std::string> kTargets{"worker", "guard", "launcher", "console", "the run's folder, removed"};
  for (const Deed& deed : plan.deeds) {
    text +=
        fmt::format("\n  {} {} ms: signal {} to {} {}", plan.when_ready ? "ready, after" : "after", deed.after.count(),
                    deed.signal_number, kTargets[static_cast<std::size_t>(deed.target)], deed.rank);
  }
  if (plan.file_limit > 0) text += fmt::format("\n  {} descriptors", plan.file_limit);
  if (plan.file_size_limit > 0) text += fmt::format("\n  files of {} bytes", plan.file_size_limit);
  return text + "\n";
}

}  // namespace lrun::test
