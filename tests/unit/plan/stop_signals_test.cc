#include "plan/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/user_error.h"

namespace lrun::launcher {
namespace {

Setting<std::string> asked(const std::string& names) { return {names, Source::kFlag, "--signals-to-handle"}; }

TEST(StopSignals, AreFourByDefault) {
  std::vector<std::string> warnings;
  EXPECT_EQ(choose_stop_signals({}, {}, warnings), default_stop_signals());
}

TEST(StopSignals, AreThoseNamedAndWorkersFindTheText) {
  std::vector<std::string> warnings;
  const StopSignals signals = choose_stop_signals(asked("SIGTERM, USR1"), {}, warnings);
  EXPECT_EQ(signals.numbers, (std::vector<int>{SIGTERM, SIGUSR1}));
  EXPECT_EQ(signals.names, "SIGTERM, USR1");
  EXPECT_TRUE(warnings.empty());
}

TEST(StopSignals, WhatCannotBeHandledIsRefused) {
  std::vector<std::string> warnings;
  for (const char* const names : {"SIGNONE", "SIGTERM,SIGKILL", "SIGSTOP", "SIGTERM,", "SIGIO"}) {
    EXPECT_THROW(choose_stop_signals(asked(names), {}, warnings), UserError) << names;
  }
}

TEST(StopSignals, WhatLrunAndTheCLibraryNeedIsRefused) {
  std::vector<std::string> warnings;
  for (int number = 32; number <= SIGRTMIN + 1; ++number) {
    EXPECT_THROW(choose_stop_signals(asked(std::to_string(number)), {}, warnings), UserError) << number;
  }
  const std::string free = std::to_string(SIGRTMIN + 2);
  EXPECT_EQ(choose_stop_signals(asked(free), {}, warnings).numbers, std::vector<int>{SIGRTMIN + 2});
}

TEST(StopSignals, TorchrunOnlyWarnsOfThem) {
  std::vector<std::string> warnings;
  const StopSignals signals =
      choose_stop_signals(asked("SIGTERM,SIGNONE"), personality_of(Compat::kTorchrun), warnings);
  EXPECT_EQ(signals.numbers, std::vector<int>{SIGTERM});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("SIGNONE"), std::string::npos) << warnings[0];
}

TEST(StopSignals, OfTorchrunAreFullNamesOnly) {
  std::vector<std::string> warnings;
  const StopSignals signals =
      choose_stop_signals(asked("SIGTERM, 15,INT,SIGUSR2"), personality_of(Compat::kTorchrun), warnings);
  EXPECT_EQ(signals.numbers, (std::vector<int>{SIGTERM, SIGUSR2}));
  EXPECT_EQ(warnings, (std::vector<std::string>{"'15' of --signals-to-handle cannot be handled and is left out",
                                                "'INT' of --signals-to-handle cannot be handled and is left out"}));
}

}  // namespace
}  // namespace lrun::launcher
