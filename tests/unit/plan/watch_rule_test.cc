#include "plan/watch_rule.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

namespace lrun::launcher {
namespace {

using Kind = WatchTest::Kind;
using Tests = std::vector<WatchTest>;

WatchRule rule_of(std::string_view text) {
  auto parsed = parse_watch_rule(text);
  const auto* const problem = std::get_if<LinePattern::Problem>(&parsed);
  EXPECT_EQ(problem, nullptr) << text << ": " << problem->what;
  return problem == nullptr ? std::get<WatchRule>(std::move(parsed)) : WatchRule();
}

std::string problem_of(std::string_view text) {
  auto parsed = parse_watch_rule(text);
  const auto* const problem = std::get_if<LinePattern::Problem>(&parsed);
  return problem == nullptr ? std::string() : problem->what;
}

TEST(WatchRule, AsksWithoutTestsForNanAndInfOrForAnyLine) {
  EXPECT_EQ(rule_of("loss=([^ ]+)").tests, (Tests{{Kind::kNan}, {Kind::kInf}}));
  EXPECT_EQ(rule_of("CUDA error").tests, Tests{{Kind::kSeen}});
  EXPECT_EQ(rule_of("CUDA error => warn").tests, Tests{{Kind::kSeen}});
  EXPECT_EQ(rule_of("CUDA error => warn").pattern, "CUDA error");
}

TEST(WatchRule, ReadsTestsAndReaction) {
  const WatchRule rule = rule_of("  loss=([^ ]+)  =>  NaN,inf, > 1e3, <-2 ,3.5X , silent 5min restart");
  EXPECT_EQ(rule.pattern, "loss=([^ ]+)");
  EXPECT_EQ(rule.tests, (Tests{{Kind::kNan},
                               {Kind::kInf},
                               {Kind::kAbove, 1000},
                               {Kind::kBelow, -2},
                               {Kind::kJump, 3.5},
                               {Kind::kSilent, 0, Duration(300'000)}}));
  EXPECT_EQ(rule.reaction, WatchReaction::kRestart);
  EXPECT_EQ(rule_of("a (.+) => nan").reaction, WatchReaction::kStop);
}

TEST(WatchRule, SaysWhatItCannotRead) {
  EXPECT_EQ(problem_of("a(.+) => nam"), "'nam' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => > x"), "'> x' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => > nan"), "'> nan' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => > 0x10"), "'> 0x10' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => 1x"), "'1x' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => silent 0"), "'silent 0' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => silent"), "'silent' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => >"), "'>' is no test and no reaction");
  EXPECT_EQ(problem_of("a(.+) => stop warn"), "'stop' and 'warn' are two reactions");
  EXPECT_EQ(problem_of("a(.+) => stop nan"), "'nan' stands behind the reaction");
  EXPECT_EQ(problem_of("step => ([0-9]+)"), "'([0-9]+)' is no test and no reaction");
  EXPECT_EQ(problem_of("a => nan"), "the pattern has no group in parentheses with the number");
  EXPECT_EQ(problem_of("=> nan"), "the pattern is empty");
}

TEST(WatchRule, SeesThatItsArrowIsMissing) {
  EXPECT_EQ(problem_of("loss=([^ ]+) > 100"), "a '=>' is missing behind 'loss=([^ ]+)'");
  EXPECT_EQ(problem_of("loss=([^ ]+) -> nan stop"), "a '=>' is missing behind 'loss=([^ ]+)'");
  EXPECT_EQ(problem_of("silent 5m"), "'silent 5m' is no pattern");
  EXPECT_EQ(problem_of("CUDA error -> device"), "");
}

TEST(WatchRule, SeesThatItsGroupCannotBeWhatItAsksFor) {
  EXPECT_EQ(problem_of("loss=([0-9.]+)"), "the pattern's group cannot be 'nan'");
  EXPECT_EQ(problem_of("loss=([0-9.]+|nan) => inf"), "the pattern's group cannot be 'inf'");
  EXPECT_EQ(problem_of("loss=([0-9.]+) => > 5"), "");
  EXPECT_EQ(problem_of("loss=([-0-9.einfa]+)"), "");
}

}  // namespace
}  // namespace lrun::launcher
