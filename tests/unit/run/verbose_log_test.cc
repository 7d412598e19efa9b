#include "run/verbose_log.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

TEST(VerboseLog, SpeaksOnlyWhenAsked) {
  std::string lines;
  const auto write = [&](const std::string& line) { lines += line; };
  const VerboseLog silent(0, write);
  silent.info("a");
  silent.debug("b");
  EXPECT_EQ(lines, "");
  const VerboseLog once(1, write);
  once.info("{a}");
  once.debug("b");
  EXPECT_TRUE(lines.starts_with("lrun: info: ") && lines.ends_with(": {a}\n")) << lines;
  lines.clear();
  VerboseLog(2, write).debug("b");
  EXPECT_TRUE(lines.starts_with("lrun: debug: ") && lines.ends_with(": b\n")) << lines;
}

}  // namespace
}  // namespace lrun::launcher
