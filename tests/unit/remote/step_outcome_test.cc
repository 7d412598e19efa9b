#include "remote/step_outcome.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

const std::string kToken = "0123456789abcdef";

TEST(StepOutcome, IsTakenOutOfWhatTheUserSees) {
  OutcomeReader reader(kToken);
  const std::string bytes = "a\n" + outcome_line(kToken, 0, 7) + "b\n";
  EXPECT_EQ(reader.pass_on(bytes), "a\nb\n");
  EXPECT_EQ(reader.code(), 7);
  EXPECT_EQ(reader.rest(), "");
}

TEST(StepOutcome, IsFoundWhereverTheBytesAreCut) {
  const std::string bytes = "no end of line" + outcome_line(kToken, 12, 137) + "b";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    OutcomeReader reader(kToken);
    std::string passed = reader.pass_on(std::string_view(bytes).substr(0, cut));
    passed += reader.pass_on(std::string_view(bytes).substr(cut));
    EXPECT_EQ(passed + reader.rest(), "no end of lineb") << "cut behind " << cut;
    EXPECT_EQ(reader.code(), 137) << "cut behind " << cut;
  }
}

TEST(StepOutcome, TellsThatTheRunHasBegun) {
  const std::string bytes = "a\n" + begun_line(kToken) + "b\n";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    OutcomeReader reader(kToken);
    EXPECT_FALSE(reader.has_begun());
    std::string passed = reader.pass_on(std::string_view(bytes).substr(0, cut));
    passed += reader.pass_on(std::string_view(bytes).substr(cut));
    EXPECT_EQ(passed, "a\nb\n") << "cut behind " << cut;
    EXPECT_TRUE(reader.has_begun()) << "cut behind " << cut;
    EXPECT_EQ(reader.code(), std::nullopt);
  }
}

TEST(StepOutcome, HoldsBackNothingButItsOwnBeginning) {
  OutcomeReader reader(kToken);
  EXPECT_EQ(reader.pass_on("progress 10%"), "progress 10%");
  EXPECT_EQ(reader.pass_on("\x1e"), "");
  EXPECT_EQ(reader.pass_on("other"), "\x1eother");
  EXPECT_EQ(reader.code(), std::nullopt);
}

TEST(StepOutcome, IsNoLineThatMakesNoSense) {
  for (const char* const code :
       {"x", "", "7", "0 ", " 0", "0 256", "0 -1", "-1 0", "0 1 2", "99999999999 0", "0 10000000000000000"}) {
    OutcomeReader reader(kToken);
    const std::string line = "\x1e" + kToken + " " + code + "\n";
    EXPECT_EQ(reader.pass_on(line) + reader.rest(), line);
    EXPECT_EQ(reader.code(), std::nullopt) << code;
  }
}

TEST(StepOutcome, IsWhatWasSaidLastOfTheNewestRound) {
  OutcomeReader reader(kToken);
  EXPECT_EQ(reader.pass_on(outcome_line(kToken, 9, 1) + outcome_line(kToken, 9, 0)), "");
  EXPECT_EQ(reader.code(), 0);
  EXPECT_EQ(reader.pass_on(outcome_line(kToken, 10, 3)), "");
  EXPECT_EQ(reader.code(), 3);
  EXPECT_EQ(reader.pass_on(outcome_line(kToken, 9, 125)), "") << "nor is it for the user";
  EXPECT_EQ(reader.code(), 3) << "the job went on without who says that";
}

TEST(StepOutcome, IsOfThisRunOnly) {
  OutcomeReader reader(kToken);
  const std::string line = outcome_line("fedcba9876543210", 0, 1);
  EXPECT_EQ(reader.pass_on(line), line);
  EXPECT_EQ(reader.code(), std::nullopt);
}

}  // namespace
}  // namespace lrun::launcher
