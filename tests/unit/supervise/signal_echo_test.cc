#include "supervise/signal_echo.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

TEST(SignalEcho, IsTheOtherHalfOfASignalToBothProcesses) {
  for (const bool forwarded_first : {true, false}) {
    SignalEcho echo;
    const SteadyTime now{};
    EXPECT_FALSE(echo.is_echo(SIGTERM, forwarded_first, now));
    EXPECT_TRUE(echo.is_echo(SIGTERM, !forwarded_first, now + 10ms));
    EXPECT_FALSE(echo.is_echo(SIGTERM, forwarded_first, now + 20ms)) << "asked a second time";
    EXPECT_TRUE(echo.is_echo(SIGTERM, !forwarded_first, now + 30ms));
  }
}

TEST(SignalEcho, IsNoSecondSignalOfAPerson) {
  SignalEcho echo;
  const SteadyTime now{};
  EXPECT_FALSE(echo.is_echo(SIGINT, true, now));
  EXPECT_FALSE(echo.is_echo(SIGINT, true, now)) << "the same way twice";
  EXPECT_FALSE(echo.is_echo(SIGTERM, false, now)) << "another signal";
  EXPECT_FALSE(echo.is_echo(SIGTERM, true, now + 1min)) << "long after";
}

}  // namespace
}  // namespace lrun::launcher
