#include "faults/lrun_faults.h"

#include <fmt/format.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "faults/worker_lives.h"

namespace lrun::test {
namespace {

using std::chrono::milliseconds;
using Target = Deed::Target;

void expect_interrupted(RunPlan& plan, int signal_number) {
  plan.expected.signal_number = signal_number;
  plan.expected.reason = "interrupted";
  plan.expected.may_have_no_run = !plan.when_ready;
}

/// Continued, asked twice and killed after that: this ends it in any state.
void end_for_sure(Chance& chance, RunPlan& plan) {
  const milliseconds soon(chance.below(60));
  plan.deeds.push_back({Target::kLauncher, 0, SIGCONT, milliseconds(chance.below(30))});
  plan.deeds.push_back({Target::kGuard, 0, SIGCONT, milliseconds(0)});
  for (const milliseconds after : {soon, milliseconds(100), milliseconds(100)}) {
    plan.deeds.push_back({Target::kGuard, 0, SIGINT, after});
  }
}

std::string random_life(Chance& chance) {
  std::string life = quiet_plan(chance, "", 1, false).scripts.front();
  if (!chance.percent(40)) return life;
  const std::string before = chance.percent(50) ? prelude(chance) : fmt::format("sleep:{},", chance.below(80));
  return before == "files," ? random_ending(chance).step : before + random_ending(chance).step;
}

}  // namespace

RunPlan stopped_worker(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "a worker stands still, and somebody ends the run", 1, false);
  plan.options[3] = "200ms";
  const int victim = chance.below(plan.world_size);
  plan.deeds = {{Target::kWorker, victim, SIGSTOP, milliseconds(chance.below(10))},
                {Target::kGuard, 0, SIGTERM, milliseconds(chance.below(50))}};
  expect_interrupted(plan, SIGTERM);
  return plan;
}

RunPlan signal_to_lrun(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "lrun gets a signal", 1, false);
  plan.when_ready = chance.percent(70);
  const int number = chance.one_of(std::vector<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT});
  const milliseconds delay(chance.below(plan.when_ready ? 10 : 40));
  const bool inner = plan.when_ready && chance.percent(25);
  plan.deeds = {{inner ? Target::kLauncher : Target::kGuard, 0, number, delay}};
  if (chance.percent(30)) plan.deeds.push_back({Target::kGuard, 0, SIGTERM, milliseconds(chance.below(60))});
  if (chance.percent(20)) plan.deeds.push_back({Target::kLauncher, 0, number, milliseconds(0)});
  expect_interrupted(plan, number);
  return plan;
}

RunPlan guard_killed(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "kill -9 of lrun's guard", 1, false);
  plan.when_ready = chance.percent(60);
  plan.deeds = {{Target::kGuard, 0, SIGKILL, milliseconds(chance.below(plan.when_ready ? 5 : 40))}};
  plan.expected.signal_number = SIGKILL;
  return plan;
}

RunPlan launcher_killed(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "kill -9 of lrun's launcher", 1, false);
  plan.when_ready = chance.percent(60);
  plan.deeds = {{Target::kLauncher, 0, SIGKILL, milliseconds(chance.below(plan.when_ready ? 5 : 20))}};
  plan.expected.exit_code = 125;
  plan.expected.says = "lrun itself died of SIGKILL";
  return plan;
}

/// Then nothing is left that could end processes in sessions of their own: there are none in this run.
RunPlan both_killed(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "kill -9 of both at the same time", 1, false);
  for (std::string& script : plan.scripts) script = chance.percent(50) ? "meet,wait" : "ignore,meet,wait";
  plan.deeds = {{Target::kGuard, 0, SIGSTOP, milliseconds(chance.below(5))},
                {Target::kLauncher, 0, SIGKILL, milliseconds(0)},
                {Target::kGuard, 0, SIGKILL, milliseconds(0)}};
  plan.expected.signal_number = SIGKILL;
  return plan;
}

RunPlan one_stopped(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "one process of lrun is stopped, and the other one killed", 1, false);
  const bool guard_is_stopped = chance.percent(50);
  const Target stopped = guard_is_stopped ? Target::kGuard : Target::kLauncher;
  const Target killed = guard_is_stopped ? Target::kLauncher : Target::kGuard;
  plan.deeds = {{stopped, 0, SIGSTOP, milliseconds(chance.below(5))}};
  const auto kill_at = chance.percent(60) ? plan.deeds.end() : plan.deeds.begin();
  plan.deeds.insert(kill_at, {killed, 0, SIGKILL, milliseconds(chance.below(3))});
  if (chance.percent(30)) plan.deeds.insert(plan.deeds.begin(), {killed, 0, SIGSTOP, milliseconds(0)});
  if (guard_is_stopped) {
    plan.deeds.push_back({stopped, 0, SIGCONT, milliseconds(1000)});  // it may have been about to end
    plan.expected.exit_code = 125;
    plan.expected.says = "lrun itself died of SIGKILL";
  } else {
    plan.expected.signal_number = SIGKILL;
  }
  return plan;
}

RunPlan console_closed(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "whoever reads the output goes away", 1, false);
  plan.options = {"-n", std::to_string(plan.world_size), "--grace", "200ms"};
  script_of(plan, chance.below(plan.world_size)) = "meet,chatter";
  plan.deeds = {{Target::kConsole, 0, 0, milliseconds(chance.below(20))}};
  plan.expected.signal_number = SIGPIPE;
  plan.expected.reason = "console_closed";
  return plan;
}

RunPlan time_is_up(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "the run takes longer than it may", 1, false);
  plan.options[3] = chance.one_of(std::vector<std::string>{"0", "200ms"});
  const std::string option = chance.percent(50) ? "--timeout" : "--start-timeout";
  plan.options.insert(plan.options.end(), {option, fmt::format("{}ms", chance.between(1, 150))});
  plan.expected.exit_code = 124;
  plan.expected.reason = option == "--timeout" ? "timed_out" : "start_timed_out";
  return plan;
}

RunPlan interrupted_restarts(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "something happens to a run that is started again and again", 1, false);
  const int culprit = chance.below(plan.world_size);
  for (std::string& script : plan.scripts) {
    // With nobody else's second of drained pipes between them, there are many attempts.
    if (script.find("child") != std::string::npos) script = "meet,wait";
  }
  std::string& scripts = script_of(plan, culprit);
  scripts.clear();
  // A fault in the first 400 ms always meets a running lrun: 60 attempts take at least 480 ms.
  for (int attempt = 0; attempt < 60; ++attempt)
    add_attempt(scripts, fmt::format("sleep:{},exit:{}", chance.between(8, 16), attempt + 1));
  plan.options.insert(plan.options.end(),
                      {"--max-restarts", "59", "--restart-backoff", chance.percent(50) ? "0" : "20ms"});
  plan.when_ready = false;
  const milliseconds delay(chance.below(400));
  const int kind = chance.below(4);
  if (kind == 0) {
    plan.deeds = {{Target::kGuard, 0, SIGKILL, delay}};
    plan.expected.signal_number = SIGKILL;
  } else if (kind == 1) {
    plan.deeds = {{Target::kLauncher, 0, SIGKILL, delay}};
    plan.expected.anything = true;
  } else {
    // Workers that are being stopped because one failed end with that.
    plan.deeds = {{Target::kGuard, 0, chance.percent(50) ? SIGTERM : SIGINT, delay}};
    plan.expected.anything = true;
  }
  return plan;
}

RunPlan anything(Chance& chance) {
  RunPlan plan = quiet_plan(chance, "several things happen at once", 1, false);
  for (std::string& script : plan.scripts) {
    script = random_life(chance);
    if (chance.percent(20)) add_attempt(script, random_life(chance));
  }
  plan.options[3] = chance.one_of(std::vector<std::string>{"0", "100ms", "300ms"});
  if (chance.percent(30)) plan.options.insert(plan.options.end(), {"--max-restarts", "3", "--restart-backoff", "10ms"});
  plan.when_ready = false;
  static const std::vector<int> kSignals{SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGTSTP, SIGSTOP,
                                         SIGCONT, SIGUSR1, SIGUSR2, SIGKILL, SIGCHLD};
  bool one_is_killed = false;
  for (int deed = chance.between(1, 5); deed > 0; --deed) {
    const auto target = chance.one_of(std::vector<Target>{Target::kWorker, Target::kGuard, Target::kLauncher});
    int number = chance.one_of(kSignals);
    // With both killed nothing is left that could end processes in sessions of their own.
    if (target != Target::kWorker && number == SIGKILL && std::exchange(one_is_killed, true)) number = SIGTERM;
    plan.deeds.push_back({target, chance.below(plan.world_size), number, milliseconds(chance.below(40))});
  }
  end_for_sure(chance, plan);
  plan.expected.anything = true;
  return plan;
}

}  // namespace lrun::test
