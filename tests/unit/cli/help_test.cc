#include "cli/help.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/split.h"
#include "cli/flags.h"

namespace lrun::launcher {
namespace {

/// As a whole word: no longer name begins at the same place.
bool names(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end == text.size() || std::string_view(" ,/[\n").find(text[end]) != std::string_view::npos) return true;
  }
  return false;
}

TEST(Help, TheShortOneIsOneScreen) {
  const auto lines = split_lines(short_help());
  EXPECT_LE(lines.size(), 24U);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Help, TheLongOneFitsATerminal) {
  for (const std::string& line : split_lines(long_help())) EXPECT_LE(line.size(), 79U) << line;
}

TEST(Help, TheLongOneNamesEveryFlagAndTheShortOneThoseWithABrief) {
  for (const Flag& flag : flag_table()) {
    const std::string name = "--" + std::string(flag.name);
    EXPECT_TRUE(names(long_help(), name)) << name;
    EXPECT_EQ(names(short_help(), name), !flag.brief.empty()) << name;
  }
}

TEST(Help, ExamplesComeBeforeOptions) {
  EXPECT_LT(long_help().find("Examples:"), long_help().find("  --devices N|LIST|auto|-1\n"));
}

TEST(Help, LinesDoNotEndInBlanks) {
  for (const std::string& line : split_lines(short_help() + long_help())) {
    EXPECT_TRUE(line.empty() || line.back() != ' ') << '\'' << line << '\'';
  }
}

}  // namespace
}  // namespace lrun::launcher
