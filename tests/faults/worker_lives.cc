#include "faults/worker_lives.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>
#include <vector>

namespace lrun::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kOnALoadedMachine{15'000};
constexpr milliseconds kLongGrace{30'000};

const std::vector<int>& signals_that_end() {
  static const std::vector<int> kSignals{SIGSEGV, SIGABRT, SIGBUS,  SIGFPE,  SIGILL,  SIGKILL, SIGTERM, SIGINT,
                                         SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGSYS,  SIGTRAP};
  return kSignals;
}

// The behaviour of workers that are not to blame: obedient ones end on a signal, the others have to be killed.
const std::vector<std::string>& obedient_lives() {
  static const std::vector<std::string> kLives{"meet,wait",
                                               "meet,wait",
                                               "obey:0,meet,wait",
                                               "obey:7,meet,wait",
                                               "meet,chatter",
                                               "child:session,meet,wait",
                                               "child:quiet,meet,wait",
                                               "child:orphan,meet,wait",
                                               "child:respawn,meet,wait",
                                               "nonblock,meet,chatter",
                                               "close,meet,wait",
                                               "print:20000,meet,wait",
                                               "line:100001,meet,wait",
                                               "leaderless,meet,wait"};
  return kLives;
}

const std::vector<std::string>& stubborn_lives() {
  static const std::vector<std::string> kLives{"ignore,meet,wait",      "ignore,meet,chatter",
                                               "child:group,meet,wait", "meet,stop,wait",
                                               "meet,vfork,wait",       "ignore,leaderless,meet,wait"};
  return kLives;
}

std::string grace_option(Chance& chance, bool any_stubborn) {
  std::vector<std::string> choices{"0", "100ms", "300ms"};
  if (!any_stubborn) choices.insert(choices.end(), 3, std::to_string(kLongGrace.count()) + "ms");
  return chance.one_of(choices);
}

std::vector<std::string> output_options(Chance& chance) {
  static const std::vector<std::vector<std::string>> kChoices{
      {},
      {},
      {"--log-dir", "/dev/null"},
      {"--log-dir", "@/logs"},
      {"--output", "raw"},
      {"--output", "rank0"},
      {"--output", "quiet"},
      {"-r", "3"},
      {"-t", "3"},
      {"-v"},
      {"--output", "fold"},
      {"--pty"},
      {"--timestamps"},
      {"--log-max-bytes", "100000"},
  };
  return chance.one_of(kChoices);
}

}  // namespace

RunPlan quiet_plan(Chance& chance, std::string kind, int least_workers, bool early_ends) {
  RunPlan plan{.kind = std::move(kind), .world_size = chance.between(least_workers, 8), .limit = kOnALoadedMachine};
  const bool any_stubborn = chance.percent(40);
  for (int rank = 0; rank < plan.world_size; ++rank) {
    const bool stubborn = any_stubborn && chance.percent(40);
    const bool early = early_ends && rank > 0 && chance.percent(10);
    plan.scripts.push_back(early ? "ready,exit:0" : chance.one_of(stubborn ? stubborn_lives() : obedient_lives()));
  }
  plan.options = {"-n", std::to_string(plan.world_size), "--grace", grace_option(chance, any_stubborn)};
  const auto output = output_options(chance);
  plan.options.insert(plan.options.end(), output.begin(), output.end());
  return plan;
}

void add_attempt(std::string& scripts, const std::string& script) {
  if (!scripts.empty()) scripts += '/';
  scripts += script;
}

std::string& script_of(RunPlan& plan, int rank) { return plan.scripts[static_cast<std::size_t>(rank)]; }

int ending_signal(Chance& chance) { return chance.one_of(signals_that_end()); }

Ending random_ending(Chance& chance) {
  const int kind = chance.below(10);
  if (kind == 0) return {"crash", "signaled", SIGSEGV};
  if (kind == 1) return {"abort", "signaled", SIGABRT};
  if (kind == 2) return {"group:9", "signaled", SIGKILL};
  if (kind <= 5) {
    const int number = ending_signal(chance);
    return {fmt::format("raise:{}", number), "signaled", number};
  }
  const int code = chance.between(1, 255);
  return {fmt::format("exit:{}", code), "exited", code};
}

std::string prelude(Chance& chance) {
  static const std::vector<std::string> kPreludes{"",
                                                  "",
                                                  "print:1000,",
                                                  "print:3000001,",
                                                  "print:3000000,",
                                                  "line:2000001,",
                                                  "line:1500000,",
                                                  "close,",
                                                  "child:session,",
                                                  "child:orphan,",
                                                  "child:group,",
                                                  "child:quiet,",
                                                  "child:respawn,",
                                                  "binary:5000,",
                                                  "binary:200001,",
                                                  "files,",
                                                  "ignore,",
                                                  "print:100001,close,",
                                                  "leaderless,"};
  return chance.one_of(kPreludes);
}

void blame(RunPlan& plan, int rank, const Ending& ending) {
  plan.expected.culprit = rank;
  plan.expected.reason = "worker_failed";
  plan.expected.ending = ending.ending;
  plan.expected.value = ending.value;
  plan.expected.exit_code = ending.ending == "exited" ? ending.value : 128 + ending.value;
}

}  // namespace lrun::test
