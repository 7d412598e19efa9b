#include "runtime/launch/interpreter.h"

#include <gtest/gtest.h>

namespace lrun::detail {
namespace {

TEST(IsInteractive, KnowsInterpretersOfCxxByTheirNames) {
  for (const std::string program : {"/usr/bin/clang-repl-19", "/opt/llvm/bin/clang-repl", "/usr/bin/cling",
                                    "/opt/root/bin/root.exe", "/opt/conda/bin/xcpp", "/opt/conda/bin/xeus-cling"}) {
    EXPECT_TRUE(is_interactive({.program = program})) << program;
  }
  for (const std::string program : {"/home/me/train", "/usr/bin/python3.11", "/home/cling/train", ""}) {
    EXPECT_FALSE(is_interactive({.program = program})) << program;
  }
}

TEST(IsInteractive, IsAPythonWithAPrompt) {
  EXPECT_TRUE(is_interactive({.program = "/usr/bin/python3.11", .python_prompt = true}));
}

TEST(InterpreterFacts, AreThoseOfThisProcess) {
  const InterpreterFacts facts = interpreter_facts();
  EXPECT_TRUE(facts.program.ends_with("/test_runtime_launch")) << facts.program;
  EXPECT_FALSE(facts.python_prompt);
}

}  // namespace
}  // namespace lrun::detail
