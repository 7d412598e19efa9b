#include "plan/strategy_choice.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

TEST(ChooseStrategy, IsDdpForMoreThanOneDeviceOrNode) {
  EXPECT_EQ(choose_strategy({}, 1, 1).value, "single");
  EXPECT_EQ(choose_strategy({}, 2, 1).value, "ddp");
  EXPECT_EQ(choose_strategy({}, 1, 2).value, "ddp");
  EXPECT_FALSE(choose_strategy({}, 2, 1).given());
}

TEST(ChooseStrategy, KeepsWhatWasAskedAndWhoAsked) {
  for (const char* name :
       {"ddp", "dp", "ddp2", "ddp_sharded", "ddp_spawn", "ddp_fork", "ddp_notebook", "deepspeed", "horovod", "tpu"}) {
    EXPECT_EQ(choose_strategy(flag("--strategy", name), 1, 1), flag("--strategy", name));
  }
}

TEST(ChooseStrategy, RefusesLaterOnesUnknownOnesAndSingleForSeveral) {
  EXPECT_EQ(refusal_of([] { choose_strategy(flag("--strategy", "fsdp"), 2, 1); }),
            "strategy 'fsdp' is not in this version of lrun | use '--strategy ddp'");
  EXPECT_EQ(refusal_of([] { choose_strategy(flag("--strategy", "dpp"), 2, 1); }),
            "unknown strategy 'dpp' | did you mean 'ddp'?");
  EXPECT_EQ(
      refusal_of([] { choose_strategy(flag("--strategy", "mystery"), 2, 1); }),
      "unknown strategy 'mystery' | use ddp, dp, ddp2, ddp_sharded, ddp_spawn, ddp_fork, ddp_notebook, deepspeed, "
      "horovod, tpu or single");
  EXPECT_NE(refusal_of([] { choose_strategy(flag("--strategy", "single"), 2, 1); }), "");
  EXPECT_EQ(choose_strategy(flag("--strategy", "single"), 1, 1).value, "single");
}

LaunchRequest with_command(const std::vector<std::string>& command) {
  LaunchRequest request;
  request.command = command;
  return request;
}

std::string refusal_of_program(const std::string& strategy, const LaunchRequest& request, const ProgramFacts& program) {
  return refusal_of([&] { check_program(flag("--strategy", strategy), request, program); });
}

TEST(CheckProgram, RefusesPythonWhereOnlyLiblrunCarriesTheStrategyOut) {
  const LaunchRequest script = with_command({"train.py"});
  EXPECT_EQ(refusal_of_program("dp", script, {}),
            "'--strategy dp' is carried out by liblrun, and 'train.py' is a Python program: it would train on one "
            "device | use '--strategy ddp' and DistributedDataParallel, or '--liblrun' for one that starts a program "
            "of liblrun");
  EXPECT_EQ(refusal_of_program("ddp_sharded", script, {}),
            "'--strategy ddp_sharded' is carried out by liblrun, and 'train.py' is a Python program: it would train "
            "without sharding | use '--strategy ddp' and FSDP or ZeroRedundancyOptimizer, or '--liblrun' for one that "
            "starts a program of liblrun");
  EXPECT_NE(refusal_of_program("ddp2", script, {}).find("on one device of each node"), std::string::npos);
  for (const char* strategy : {"ddp", "single", "deepspeed", "horovod", "tpu", "ddp_spawn", "ddp_fork"}) {
    EXPECT_EQ(refusal_of_program(strategy, script, {}), "") << strategy;
  }
}

TEST(CheckProgram, KnowsPythonByEveryWayToStartIt) {
  const ProgramFacts executable{true, ""};
  const ProgramFacts console_script{true, "#!/home/me/venv/bin/python3.11"};
  const ProgramFacts by_env{true, "#!/usr/bin/env -S LC_ALL=C python3 -u"};
  LaunchRequest module = with_command({"package.train"});
  module.module = true;
  LaunchRequest executed = with_command({"train.py"});
  executed.no_python = true;
  EXPECT_NE(refusal_of_program("dp", module, {}), "");
  EXPECT_NE(refusal_of_program("dp", executed, by_env), "");
  EXPECT_NE(refusal_of_program("dp", with_command({"python", "train.py"}), executable), "");
  EXPECT_NE(refusal_of_program("dp", with_command({"/usr/bin/python3.11", "-m", "train"}), executable), "");
  EXPECT_NE(refusal_of_program("dp", with_command({"accelerate", "launch"}), console_script), "");
  EXPECT_NE(refusal_of_program("dp", with_command({"./notes"}), {false, "#!/usr/bin/python3"}), "");
}

TEST(CheckProgram, TakesWhatMayBeOfLiblrun) {
  EXPECT_EQ(refusal_of_program("dp", with_command({"./train"}), {true, ""}), "");
  EXPECT_EQ(refusal_of_program("dp", with_command({"./train.sh"}), {true, "#!/home/me/python-lab/bin/sh"}), "");
  EXPECT_EQ(refusal_of_program("dp", with_command({"./python_like"}), {true, ""}), "");
  LaunchRequest wrapper = with_command({"train.py"});
  wrapper.of_liblrun = true;
  EXPECT_EQ(refusal_of_program("dp", wrapper, {}), "");
}

}  // namespace
}  // namespace lrun::launcher
