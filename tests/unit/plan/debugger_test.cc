#include "plan/debugger.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

TEST(Debugger, OfAProgramIsGdb) {
  EXPECT_EQ(below_debugger({"./train", "--lr", "3"}), (Words{"gdb", "-q", "--args", "./train", "--lr", "3"}));
}

TEST(Debugger, OfPythonIsPdbBehindPythonsOwnOptions) {
  EXPECT_EQ(below_debugger({"/usr/bin/python3", "-u", "x.py", "-m"}),
            (Words{"/usr/bin/python3", "-u", "-m", "pdb", "x.py", "-m"}));
  EXPECT_EQ(below_debugger({"python3", "-u", "-m", "package.train"}),
            (Words{"python3", "-u", "-m", "pdb", "-m", "package.train"}));
}

TEST(Debugger, OfPythonLeavesTheValuesOfPythonsOptionsWhereTheyAre) {
  EXPECT_EQ(below_debugger({"python3", "-X", "dev", "x.py"}), (Words{"python3", "-X", "dev", "-m", "pdb", "x.py"}));
  EXPECT_EQ(below_debugger({"python3", "-um", "package.train"}),
            (Words{"python3", "-u", "-m", "pdb", "-m", "package.train"}));
}

TEST(Debugger, OfAPythonWithoutAProgramFileIsGdb) {
  EXPECT_EQ(below_debugger({"python3", "-c", "pass"}), (Words{"gdb", "-q", "--args", "python3", "-c", "pass"}));
  EXPECT_EQ(below_debugger({"python3"}), (Words{"gdb", "-q", "--args", "python3"}));
}

}  // namespace
}  // namespace lrun::launcher
