#include <gtest/gtest.h>

#include <csignal>
#include <variant>

#include "stop/policy.h"

namespace lrun {
namespace {

bool finishes(const Decision& decision) {
  for (const Action& action : decision.actions) {
    if (std::holds_alternative<Finish>(action)) return true;
  }
  return false;
}

Decision stopped_of(int workers) {
  SupervisionState state;
  state.running = workers;
  state.grace = Duration(30'000);
  return decide(state, SignalArrived{SIGTERM});
}

TEST(CalledOffStart, IsNotWaitedFor) {
  const Decision called_off = decide(stopped_of(5).state, StartCalledOff{3});
  EXPECT_TRUE(called_off.actions.empty()) << "two were started, and have to end";
  const Decision one_left = decide(called_off.state, WorkerEnded{});
  EXPECT_TRUE(one_left.actions.empty());
  EXPECT_TRUE(finishes(decide(one_left.state, WorkerEnded{})));
}

TEST(CalledOffStart, EndsARunWhoseOthersHaveEnded) {
  const Decision none_left = decide(decide(stopped_of(5).state, WorkerEnded{}).state, WorkerEnded{});
  EXPECT_FALSE(finishes(none_left));
  EXPECT_TRUE(finishes(decide(none_left.state, StartCalledOff{3})));
}

}  // namespace
}  // namespace lrun
