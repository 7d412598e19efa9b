#include "plan/line_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace lrun::launcher {
namespace {

using Texts = std::vector<std::string>;

LinePattern pattern_of(std::string_view text) {
  auto made = LinePattern::make(text);
  const auto* const problem = std::get_if<LinePattern::Problem>(&made);
  EXPECT_EQ(problem, nullptr) << text << ": " << problem->what;
  return std::get<LinePattern>(std::move(made));
}

std::string problem_of(std::string_view text) {
  auto made = LinePattern::make(text);
  const auto* const problem = std::get_if<LinePattern::Problem>(&made);
  if (problem == nullptr) return {};
  EXPECT_NE(problem->hint, "") << text;
  return problem->what;
}

std::string found(std::string_view pattern, std::string_view line) {
  return std::string(pattern_of(pattern).find(line).value_or("(none)"));
}

TEST(LinePattern, FindsItsFirstGroupAndElseTheWholeMatch) {
  EXPECT_EQ(found("loss=([^ ]+)", "step 1 loss=nan lr=1"), "nan");
  EXPECT_EQ(found("loss=[0-9.]+", "loss=2.5,"), "loss=2.5");
  EXPECT_EQ(found("^(a)|b", "xb"), "b") << "a group that took no part has no value";
  EXPECT_EQ(found("(?:train|val)_loss=([^ ]+)", "val_loss=3"), "3");
  EXPECT_EQ(found("loss=([^ ]+)", "Loss=1"), "(none)");
  EXPECT_EQ(found("a", ""), "(none)");
  EXPECT_EQ(found("a*", ""), "");
}

TEST(LinePattern, TakesTheFirstMatchAndItsEarlierChoices) {
  EXPECT_EQ(found("a+", "baaa aaaa"), "aaa");
  EXPECT_EQ(found("a|ab", "ab"), "a");
  EXPECT_EQ(found("(a|b)*c", "abac"), "a") << "the last turn of a group";
  EXPECT_EQ(found("x(a*)(b?)", "xaab"), "aa");
  EXPECT_EQ(found("ab?c|abd|e", "abd"), "abd");
  EXPECT_EQ(found("(ab|c|d)+e", "abcde"), "d");
}

TEST(LinePattern, CountsInBraces) {
  EXPECT_EQ(found("[0-9]{3}", "12 3456"), "345");
  EXPECT_EQ(found("a{2,}", "a aaaa"), "aaaa");
  EXPECT_EQ(found("ba{0,2}", "baaa"), "baa");
  EXPECT_EQ(found("(xy){2}", "xyxy"), "xy");
  EXPECT_EQ(found("a{0,}b", "aab"), "aab");
}

TEST(LinePattern, KnowsClassesAnchorsAndQuotedSigns) {
  EXPECT_EQ(found("\\d+\\s\\w+", "a 12 ms."), "12 ms");
  EXPECT_EQ(found("[[:digit:]x]+", "ax1x"), "x1x");
  EXPECT_EQ(found("[]a-c^-]+", "z]b^-"), "]b^-");
  EXPECT_EQ(found("[^\\]]+", "ab]"), "ab");
  EXPECT_EQ(found("^b", "ab"), "(none)");
  EXPECT_EQ(found("b$", "bab"), "b");
  EXPECT_EQ(found("^$", ""), "");
  EXPECT_EQ(found("\\(\\{\\.\\t", "({.\t"), "({.\t");
  EXPECT_EQ(found("\\D.", "1ab"), "ab");
}

TEST(LinePattern, TakesANulByteForAByte) {
  EXPECT_EQ(pattern_of("loss=([0-9]+)").find(std::string_view("a\0loss=7\0", 9)), "7");
}

TEST(LinePattern, KnowsWhatItsGroupMayBe) {
  EXPECT_TRUE(pattern_of("loss=([^ ]+)").group_may_be("nan"));
  EXPECT_TRUE(pattern_of("loss=([-0-9.einfa]+)").group_may_be("nan"));
  EXPECT_FALSE(pattern_of("loss=([0-9.]+)").group_may_be("nan"));
}

TEST(LinePattern, KnowsTheTextsOfItsMatches) {
  EXPECT_EQ(pattern_of("loss=([^ ]+)").literals(), Texts{"loss="});
  EXPECT_EQ(pattern_of("a(b|c)defg?h").literals(), Texts{"def"});
  EXPECT_EQ(pattern_of("x\\.y[]|]z+").literals(), Texts{"x.y"});
  EXPECT_EQ(pattern_of("[[:digit:]]+ steps").literals(), Texts{" steps"});
  EXPECT_EQ(pattern_of("\\(ab\\)|cd\\wef").literals(), (Texts{"(ab)", "cd"}));
  EXPECT_EQ(pattern_of("Xid|[0-9]+").literals(), Texts{}) << "one branch has none";
  EXPECT_EQ(pattern_of("(Xid)").literals(), Texts{});
  EXPECT_EQ(pattern_of("ab{2}").literals(), Texts{"a"});
}

TEST(LinePattern, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(problem_of(""), "the pattern is empty");
  EXPECT_EQ(problem_of("(?i)loss"), "'(?' is not known in a pattern");
  EXPECT_EQ(problem_of("(a*)\\1"), "'\\1' is not known in a pattern");
  EXPECT_EQ(problem_of("a++"), "two of '*', '+', '?', '{' stand side by side");
  EXPECT_EQ(problem_of("*a"), "nothing stands in front of '*'");
  EXPECT_EQ(problem_of("a{b"), "a count in braces has no number");
  EXPECT_EQ(problem_of("a{3,2}"), "there is no such count in braces");
  EXPECT_EQ(problem_of("loss=(x"), "a '(' is not closed");
  EXPECT_EQ(problem_of("loss=x)"), "a ')' closes nothing");
  EXPECT_EQ(problem_of("[a"), "a '[' is not closed");
  EXPECT_EQ(problem_of("[z-a]"), "a range in brackets goes backwards");
  EXPECT_EQ(problem_of("[[:letter:]]"), "there is no class '[:letter:]'");
  EXPECT_EQ(problem_of("a\\"), "the pattern ends with a backslash");
  EXPECT_EQ(problem_of("a\nb"), "the pattern has a control character");
  EXPECT_EQ(problem_of(std::string(501, 'a')), "the pattern is longer than 500 bytes");
  EXPECT_EQ(problem_of("((a{200}){200}){200}"), "the pattern is too large");
  EXPECT_EQ(problem_of(std::string(60, '(') + "a" + std::string(60, ')')), "groups stand within each other too often");
}

/// With libc's regexec() these take seconds, or memory without an end.
TEST(LinePattern, TakesNoLongerForOnePatternThanForAnother) {
  const std::string line(4000, 'a');
  for (const char* const text :
       {"(.*)(.*)(.*)(.*)b$", "((a|b| )+(a|b)+)+b$", ".*a.......................x=(.*)", "(a*)*b"}) {
    EXPECT_EQ(found(text, line), "(none)") << text;
  }
}

}  // namespace
}  // namespace lrun::launcher
