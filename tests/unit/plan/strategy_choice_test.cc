#include "plan/strategy_choice.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

TEST(ChooseStrategy, IsDdpForMoreThanOneDeviceOrNode) {
  EXPECT_EQ(choose_strategy({}, 1, 1).value, Strategy::kSingle);
  EXPECT_EQ(choose_strategy({}, 2, 1).value, Strategy::kDdp);
  EXPECT_EQ(choose_strategy({}, 1, 2).value, Strategy::kDdp);
  EXPECT_FALSE(choose_strategy({}, 2, 1).given());
}

TEST(ChooseStrategy, KeepsWhatWasAskedAndItsOrigin) {
  const Setting<Strategy> expected{Strategy::kDdp2, Source::kFlag, "--strategy"};
  EXPECT_EQ(choose_strategy(strategy_flag("ddp2"), 1, 1), expected);
}

LaunchRequest with_command(const std::vector<std::string>& command) {
  LaunchRequest request;
  request.command = command;
  return request;
}

std::string refusal_of_program(const std::string& strategy, const LaunchRequest& request, const ProgramFacts& program) {
  return refusal_of([&] { check_program(choose_strategy(strategy_flag(strategy), 1, 1), request, program); });
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
  for (const char* strategy : {"ddp", "deepspeed", "horovod", "tpu", "ddp_spawn", "ddp_fork"}) {
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
