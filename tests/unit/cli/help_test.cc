#include "cli/help.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "cli/flags.h"
#include "lrun_version.h"

namespace lrun {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Help, TheShortOneIsOneScreen) {
  const auto lines = lines_of(short_help());
  EXPECT_LE(lines.size(), 24U);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Help, TheLongOneFitsATerminal) {
  for (const std::string& line : lines_of(long_help())) EXPECT_LE(line.size(), 79U) << line;
}

TEST(Help, BothNameEveryFlagOfThisVersion) {
  for (const Flag& flag : flag_table()) {
    const std::string name = "--" + std::string(flag.name);
    EXPECT_NE(long_help().find(name), std::string::npos) << name;
    EXPECT_EQ(short_help().find(name) != std::string::npos, in_this_version(flag)) << name;
  }
}

TEST(Help, ExamplesComeBeforeOptions) {
  EXPECT_LT(long_help().find("Examples:"), long_help().find("  --devices N|LIST|auto|-1\n"));
}

TEST(Help, LinesDoNotEndInBlanks) {
  for (const std::string& line : lines_of(short_help() + long_help())) {
    EXPECT_TRUE(line.empty() || line.back() != ' ') << '\'' << line << '\'';
  }
}

TEST(Version, IsTheProjects) { EXPECT_EQ(version_line(), "lrun " LRUN_VERSION "\n"); }

}  // namespace
}  // namespace lrun
