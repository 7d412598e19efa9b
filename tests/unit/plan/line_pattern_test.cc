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

TEST(LinePattern, FindsItsFirstGroupAndElseTheWholeMatch) {
  EXPECT_EQ(pattern_of("loss=([^ ]+)").find("step 1 loss=nan lr=1"), "nan");
  EXPECT_EQ(pattern_of("loss=[0-9.]+").find("loss=2.5,"), "loss=2.5");
  EXPECT_EQ(pattern_of("^(a)|b").find("xb"), "b") << "a group that took no part has no value";
  EXPECT_EQ(pattern_of("loss=([^ ]+)").find("Loss=1"), std::nullopt);
}

TEST(LinePattern, TakesANulByteForAByte) {
  EXPECT_EQ(pattern_of("loss=([0-9]+)").find(std::string_view("a\0loss=7\0", 9)), "7");
}

TEST(LinePattern, KnowsTheTextsOfItsMatches) {
  EXPECT_EQ(pattern_of("loss=([^ ]+)").literals(), Texts{"loss="});
  EXPECT_EQ(pattern_of("a(b|c)defg?h").literals(), Texts{"def"});
  EXPECT_EQ(pattern_of("x\\.y[]|]z+").literals(), Texts{"x.y"});
  EXPECT_EQ(pattern_of("[[:digit:]]+ steps").literals(), Texts{" steps"});
  EXPECT_EQ(pattern_of("\\(ab\\)|cd\\wef").literals(), (Texts{"(ab)", "cd"}));
  EXPECT_EQ(pattern_of("Xid|[0-9]+").literals(), Texts{}) << "one branch has none";
  EXPECT_EQ(pattern_of("(Xid)").literals(), Texts{});
}

TEST(LinePattern, RefusesWhatItsLibraryDoesNotKnowOrTakesLongFor) {
  EXPECT_EQ(problem_of(""), "the pattern is empty");
  EXPECT_EQ(problem_of("loss=\\d+"), "'\\d' and '\\D' are not known in a pattern");
  EXPECT_EQ(problem_of("(?i)loss"), "'(?' is not known in a pattern");
  EXPECT_EQ(problem_of("(a*)\\1"), "a pattern cannot refer back to a group");
  EXPECT_EQ(problem_of("((a{200}){200}){200}"), "counts in braces are not known in a pattern");
  EXPECT_EQ(problem_of("a++"), "two of '*', '+', '?' stand side by side in a pattern");
  std::string nested = "a";
  for (int i = 0; i < 20; ++i) nested = "(" + nested + ")+";
  EXPECT_EQ(problem_of(nested), "too many '+' stand within each other");
  EXPECT_EQ(problem_of("((a+ b)+ c)+ d"), "");
  EXPECT_EQ(problem_of("loss=(x").substr(0, 27), "the pattern is not regular:");
  EXPECT_EQ(problem_of(std::string(501, 'a')), "the pattern is longer than 500 bytes");
  EXPECT_EQ(problem_of("a\\{b[{]"), "") << "quoted, a brace is a character";
}

}  // namespace
}  // namespace lrun::launcher
