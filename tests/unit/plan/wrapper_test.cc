#include "plan/wrapper.h"

#include <gtest/gtest.h>

#include "plan/worker_command.h"
#include "planning.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

/// The command of the last rank of a run on one host.
Words wrapped_command(const LaunchRequest& request, const ProgramFacts& program = {true, ""}) {
  const LaunchPlan plan =
      make_plan(request, Environment(), {{cpu_node()}, "this host", "nothing names other nodes"}, program, "demo");
  return command_of(plan, plan.nodes.front(), plan.nodes.front().workers.back(), 0);
}

TEST(Wrapper, OfARankWinsOverTheOneOfAllAndTheLastOverTheFirst) {
  const std::vector<Wrapper> wrappers{
      {{"for-0"}, {{0, 0}}, ""}, {{"for-all"}, {}, ""}, {{"for-some"}, {{0, 0}, {2, 3}}, ""}};
  EXPECT_EQ(wrapper_of(wrappers, 0)->words.front(), "for-some");
  EXPECT_EQ(wrapper_of(wrappers, 1)->words.front(), "for-all");
  EXPECT_EQ(wrapper_of(wrappers, 3)->words.front(), "for-some");
  EXPECT_EQ(wrapper_of({{{"for-0"}, {{0, 0}}, ""}}, 1), nullptr);
}

TEST(Wrapper, MacrosAreReplacedAndForeignOnesKept) {
  EXPECT_EQ(expand_wrapper({"-o", "%h.%r.%l.%a", "%%r", "%q{X}", "%"}, {5, 1, 2, "node-a"}),
            (std::vector<std::string>{"-o", "node-a.5.1.2", "%r", "%q{X}", "%"}));
}

TEST(Wrapper, StandsInFrontOfTheProgram) {
  LaunchRequest request = request_for("2");
  request.setup.wrappers = {{{"prof", "-o", "%r"}, {{1, 1}}, "--wrap@1"}};
  const LaunchPlan plan = plan_of(request, cpu_node());
  const NodePlan& node = plan.nodes.front();
  EXPECT_EQ(command_of(plan, node, node.workers[0], 0), (std::vector<std::string>{"./train", "--lr", "0.1"}));
  EXPECT_EQ(command_of(plan, node, node.workers[1], 0),
            (std::vector<std::string>{"prof", "-o", "1", "./train", "--lr", "0.1"}));
}

TEST(Wrapper, ThatRunsAModuleOfPythonStandsInPlaceOfPython) {
  LaunchRequest request = request_for("2");
  request.command = {"train.py", "--lr", "3"};
  request.setup.wrappers = {{{"python3.11", "-X", "dev", "-m", "debugpy", "--listen", "567%r"}, {{1, 1}}, "--wrap@1"}};
  const auto with_debugpy = [](const Words& program) {
    Words words = {"python3.11", "-X", "dev", "-u", "-m", "debugpy", "--listen", "5671"};
    words.insert(words.end(), program.begin(), program.end());
    return words;
  };
  EXPECT_EQ(wrapped_command(request), with_debugpy({"train.py", "--lr", "3"}));
  request.command = {"python3", "-u", "-c", "pass"};
  EXPECT_EQ(wrapped_command(request), with_debugpy({"-c", "pass"}));
  request.module = true;
  request.command = {"package.train"};
  EXPECT_EQ(wrapped_command(request), with_debugpy({"-m", "package.train"}));
}

TEST(Wrapper, ThatRunsAModuleMayStartPythonThroughAnother) {
  LaunchRequest request = request_for("1");
  request.command = {"train.py"};
  request.setup.wrappers = {{{"env", "A=b", "python3", "-m", "coverage", "run", "-p"}, {}, "--wrap"}};
  EXPECT_EQ(wrapped_command(request),
            (Words{"env", "A=b", "python3", "-u", "-m", "coverage", "run", "-p", "train.py"}));
  request.setup.wrappers = {{{"python3", "wrapper.py", "-m"}, {}, "--wrap"}};
  EXPECT_EQ(wrapped_command(request), (Words{"python3", "wrapper.py", "-m", "python3", "-u", "train.py"}))
      << "a script in Python may start any program";
  request.setup.wrappers = {{{"nsys", "-m"}, {}, "--wrap"}};
  EXPECT_EQ(wrapped_command(request), (Words{"nsys", "-m", "python3", "-u", "train.py"}));
}

TEST(Wrapper, ThatRunsAModuleRunsAScriptWithItsPath) {
  LaunchRequest request = request_for("1");
  request.command = {"./train", "3"};
  request.setup.wrappers = {{{"python3", "-m", "cProfile"}, {}, "--wrap"}};
  EXPECT_EQ(wrapped_command(request, {true, "#!/usr/bin/env python3"}),
            (Words{"python3", "-m", "cProfile", "./train", "3"}));
  EXPECT_EQ(wrapped_command(request, {false, "", false}), (Words{"python3", "-m", "cProfile", "./train", "3"}))
      << "a container may have the file";
}

TEST(Wrapper, ThatRunsAModuleIsRefusedForAProgramThatIsNotPython) {
  LaunchRequest request = request_for("2");
  request.setup.wrappers = {{{"python3", "-m", "cProfile"}, {{1, 1}}, "--wrap@1"}};
  const std::string refusal =
      "'--wrap@1' runs a module of Python, which cannot run './train': it is no script of Python | name the script: "
      "'lrun … SCRIPT.py', 'lrun … -m MODULE' or 'lrun … python3 SCRIPT'";
  EXPECT_EQ(refusal_of([&] { wrapped_command(request, {true, "#!/bin/sh"}); }), refusal);
  EXPECT_EQ(refusal_of([&] { wrapped_command(request, {true, ""}); }), refusal);
}

TEST(Wrapper, OfARankThatIsNotThereIsRefused) {
  LaunchRequest request = request_for("2");
  request.setup.wrappers = {{{"prof"}, {{0, 2}}, "--wrap@0-2"}};
  EXPECT_EQ(refusal_of([&] { plan_of(request, cpu_node()); }),
            "'--wrap@0-2': there is no rank 2 | this run has the ranks 0 to 1");
}

}  // namespace
}  // namespace lrun::launcher
