#include "run/launcher_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/own_signals.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr pid_t kSomebody = 1;

class LauncherSignalsTest : public ::testing::Test {
 protected:
  LauncherSignals& signals() {
    if (!signals_) {
      facts.now = [this] { return now; };
      signals_.emplace(
          *guard, facts,
          LauncherSignals::Events{[this] { calls.emplace_back("child"); }, [this] { calls.emplace_back("guard died"); },
                                  [this] { calls.emplace_back("window"); },
                                  [this](const SignalArrived& signal, bool repeats) {
                                    calls.push_back("signal " + std::to_string(signal.signal_number) +
                                                    (repeats ? " again" : ""));
                                    last = signal;
                                  }});
    }
    return *signals_;
  }
  void forward(int number) { signals().received({forwarded_signal(), guard->pid(), number}); }
  void send(int number) { signals().received({number, kSomebody, 0}); }

  std::optional<Guard> guard{std::in_place, RunGuardOptions{}, ::getppid()};
  LauncherSignals::Facts facts{.stop_signals = {SIGTERM, SIGINT}};
  SteadyTime now = steady_now();
  std::vector<std::string> calls;
  SignalArrived last;

 private:
  std::optional<LauncherSignals> signals_;
};

TEST_F(LauncherSignalsTest, AForwardedSignalIsTheOneThatTheGuardGot) {
  forward(SIGTERM);
  EXPECT_EQ(last.signal_number, SIGTERM);
  EXPECT_TRUE(last.forwarded);
  EXPECT_TRUE(last.named);
  EXPECT_TRUE(last.may_hurry);
  EXPECT_FALSE(last.by_head);
}

TEST_F(LauncherSignalsTest, OnlyTheGuardForwards) {
  signals().received({forwarded_signal(), kSomebody, SIGTERM});
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(LauncherSignalsTest, ASignalThatComesTwiceTogetherIsOne) {
  forward(SIGTERM);
  send(SIGTERM);
  now += std::chrono::minutes(1);
  send(SIGTERM);
  const std::string term = "signal " + std::to_string(SIGTERM);
  EXPECT_THAT(calls, ElementsAre(term, term + " again", term));
}

TEST_F(LauncherSignalsTest, TheManagersRepetitionsAskForNothingNew) {
  facts.repeats_term = true;
  forward(SIGTERM);
  EXPECT_TRUE(last.may_hurry);
  signals().note_end_asked();
  now += std::chrono::minutes(1);
  forward(SIGTERM);
  EXPECT_FALSE(last.may_hurry);
  EXPECT_THAT(calls.back(), ::testing::EndsWith("again"));
  forward(SIGINT);
  EXPECT_TRUE(last.may_hurry) << "a person's Ctrl-C is no repetition";
}

TEST_F(LauncherSignalsTest, TheDeathOfTheGuardComesFromThisProcess) {
  signals().received({forwarded_signal(), ::getpid(), 0});
  EXPECT_THAT(calls, IsEmpty()) << "it lives";
  guard.emplace(RunGuardOptions{}, kSomebody);
  signals().received({forwarded_signal(), ::getpid(), 0});
  EXPECT_THAT(calls, ElementsAre("guard died"));
  signals().received({SIGCONT, 0, 0});
  EXPECT_EQ(calls.size(), 1U) << "the kernel continues the launcher then, which nobody asked for";
}

TEST_F(LauncherSignalsTest, ChildrenAndWindowsAreNoRequests) {
  send(SIGCHLD);
  send(SIGWINCH);
  EXPECT_THAT(calls, ElementsAre("child", "window"));
}

TEST_F(LauncherSignalsTest, ASignalOfTheHeadIsOneOfAllTheRun) {
  facts.passed_on_by_head = [](int number) { return number == SIGINT; };
  bool lost = false;
  facts.head_is_lost = [&lost] { return lost; };
  forward(SIGINT);
  EXPECT_TRUE(last.by_head);
  EXPECT_FALSE(last.head_lost);
  lost = true;
  forward(SIGHUP);
  EXPECT_FALSE(last.by_head);
  EXPECT_TRUE(last.head_lost);
  EXPECT_FALSE(last.named);
}

}  // namespace
}  // namespace lrun::launcher
