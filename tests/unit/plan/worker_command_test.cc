#include "plan/worker_command.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

LaunchRequest request_of(const Words& command) {
  LaunchRequest request;
  request.command = command;
  return request;
}

Words command_of(const LaunchRequest& request, const ProgramFacts& program = {true, ""}) {
  return worker_command(request, program);
}

TEST(WorkerCommand, ExecutesAProgramItself) {
  EXPECT_EQ(command_of(request_of({"./train", "--lr", "0.1"})), (Words{"./train", "--lr", "0.1"}));
}

TEST(WorkerCommand, GivesAScriptToPython) {
  const Words expected = {"python3", "-u", "t.py", "--lr", "0.1"};
  EXPECT_EQ(command_of(request_of({"t.py", "--lr", "0.1"})), expected);
  EXPECT_EQ(command_of(request_of({"t.py"}), {.python = {"/opt/python"}}), (Words{"/opt/python", "-u", "t.py"}));
}

TEST(WorkerCommand, OfAScriptThatLooksLikeAnOptionIsAPath) {
  EXPECT_EQ(command_of(request_of({"-x.py", "-y"})), (Words{"python3", "-u", "./-x.py", "-y"}));
  EXPECT_EQ(command_of(request_of({"-x", "-y"})), (Words{"-x", "-y"})) << "no script";
}

TEST(WorkerCommand, RunsAModule) {
  LaunchRequest request = request_of({"pkg.train", "a"});
  request.module = true;
  EXPECT_EQ(command_of(request), (Words{"python3", "-u", "-m", "pkg.train", "a"}));
  request.no_python = true;
  EXPECT_NE(refusal_of([&] { command_of(request); }), "");
}

TEST(WorkerCommand, BelievesTheFirstLineOnlyOfWhatCannotBeExecuted) {
  const std::string python = "#!/usr/bin/env python3";
  EXPECT_EQ(command_of(request_of({"./train"}), {false, python}), (Words{"python3", "-u", "./train"}));
  EXPECT_EQ(command_of(request_of({"./train"}), {true, python}), Words{"./train"});
  EXPECT_EQ(command_of(request_of({"./train"}), {false, "#!/bin/sh"}), Words{"./train"});
  EXPECT_EQ(command_of(request_of({"./notes"}), {false, "how python works"}), Words{"./notes"});
}

TEST(WorkerCommand, LeavesAScriptThatWasTypedAsAPathToItsFirstLine) {
  const std::string own = "#!/opt/py/bin/python -u";
  EXPECT_EQ(command_of(request_of({"./t.py"}), {true, own}), Words{"./t.py"});
  EXPECT_EQ(command_of(request_of({"t.py"}), {true, own}), (Words{"python3", "-u", "t.py"}));
  EXPECT_EQ(command_of(request_of({"./t.py"}), {false, own}), (Words{"python3", "-u", "./t.py"}));
  EXPECT_EQ(command_of(request_of({"./t.py"}), {true, ""}), (Words{"python3", "-u", "./t.py"}));
  EXPECT_EQ(command_of(request_of({"./t.py"}), {true, "#!/usr/bin/env python3"}), (Words{"python3", "-u", "./t.py"}))
      << "any Python will do";
  LaunchRequest request = request_of({"./t.py"});
  request.compat = Compat::kTorchrun;
  EXPECT_EQ(command_of(request, {true, own}), (Words{"python3", "-u", "./t.py"})) << "as torchrun";
  request.compat = Compat::kLrun;
  request.setup.debug_rank = {0, Source::kFlag, "--debug-rank"};
  EXPECT_EQ(command_of(request, {true, own}), (Words{"python3", "-u", "./t.py"})) << "below pdb";
}

TEST(WorkerCommand, TakesThePythonOfAContainerThere) {
  LaunchRequest request = request_of({"t.py"});
  request.setup.wrappers = {{{"podman", "run", "image"}, {}, "--wrap"}};
  EXPECT_EQ(command_of(request, {.python = {"/home/ann/project/.venv/bin/python"}}), (Words{"python3", "-u", "t.py"}));
  const PythonChoice named{"/opt/python", "/opt/python", "--python", true};
  EXPECT_EQ(command_of(request, {.python = named}), (Words{"/opt/python", "-u", "t.py"}));
  request.setup.wrappers = {{{"nsys", "profile"}, {}, "--wrap"}};
  EXPECT_EQ(command_of(request, {.python = {"/home/ann/project/.venv/bin/python"}}).front(),
            "/home/ann/project/.venv/bin/python");
}

TEST(WorkerCommand, NoPythonExecutesWhateverItIs) {
  LaunchRequest request = request_of({"t.py"});
  request.no_python = true;
  EXPECT_EQ(command_of(request), Words{"t.py"});
}

TEST(WorkerCommand, RunPathGivesAnyFileToPython) {
  LaunchRequest request = request_of({"./train", "a"});
  request.run_path = true;
  EXPECT_EQ(command_of(request, {true, ""}), (Words{"python3", "-u", "./train", "a"}));
  request.no_python = true;
  EXPECT_EQ(command_of(request), (Words{"python3", "-u", "./train", "a"})) << "it wins, as with torchrun";
  request.no_python = false;
  request.module = true;
  EXPECT_EQ(refusal_of([&] { command_of(request); }),
            "'--module' names a module and '--run-path' a file | remove one of them");
}

TEST(WorkerCommand, IsWarnedOfWithAVariableThatNoShellReplaces) {
  EXPECT_EQ(warn_about_shell_variables({"python3", "train.py", "--rank=$RANK"}),
            "no shell replaces '--rank=$RANK' in a worker: write \"sh -c 'exec PROGRAM ...'\" around it");
  EXPECT_NE(warn_about_shell_variables({"echo", "${WORLD_SIZE}"}), "");
  for (const char* const fine : {"$local_rank", "$HOME", "echo $RANK", "price$RANK", "$RANKS"}) {
    EXPECT_EQ(warn_about_shell_variables({"sh", "-c", fine}), "") << fine;
  }
}

TEST(WorkerCommand, OfTheOldLauncherHasTheLocalRankAsFirstArgument) {
  LaunchRequest request = request_for("2");
  request.command = {"train.py", "--epochs", "2"};
  request.compat = Compat::kTorchrun;
  request.is_old_launch = true;
  const auto second_worker = [&request] {
    const LaunchPlan plan = plan_of(request, cpu_node());
    return command_of(plan, plan.nodes.front(), plan.nodes.front().workers.at(1), 0);
  };
  EXPECT_EQ(second_worker(), (Words{"python3", "-u", "train.py", "--local-rank=1", "--epochs", "2"}));
  request.module = true;
  EXPECT_EQ(second_worker(), (Words{"python3", "-u", "-m", "train.py", "--local-rank=1", "--epochs", "2"}));
  request.use_env = true;
  EXPECT_EQ(second_worker(), (Words{"python3", "-u", "-m", "train.py", "--epochs", "2"}));
  request.module = false;
  request.no_python = true;
  EXPECT_EQ(second_worker(), (Words{"train.py", "--epochs", "2"}));
  request.use_env = false;
  EXPECT_THROW((void)second_worker(), UserError) << "as torch.distributed.launch";
}

TEST(WorkerCommand, OfTorchrunKnowsNoUseEnv) {
  LaunchRequest request = request_of({"train.py"});
  request.use_env = true;
  EXPECT_EQ(command_of(request), (Words{"python3", "-u", "train.py"})) << "says of lrun what is so anyway";
  request.compat = Compat::kTorchrun;
  EXPECT_EQ(refusal_of([&] { command_of(request); }),
            "'--use-env' is an option of torch.distributed.launch, and torchrun has none of the name | leave it out: "
            "nothing is put before the arguments of PROGRAM");
}

TEST(WorkerCommand, TorchrunGivesEveryProgramToPython) {
  LaunchRequest request = request_of({"train"});
  request.compat = Compat::kTorchrun;
  EXPECT_EQ(command_of(request), (Words{"python3", "-u", "train"}));
  request.no_python = true;
  EXPECT_EQ(command_of(request), Words{"train"});
}

struct Macro {
  const char* argument;
  const char* seen;  ///< by local rank 3
};

class ExpandMacros : public testing::TestWithParam<Macro> {};

TEST_P(ExpandMacros, AsPythonsTemplateDoes) {
  EXPECT_EQ(expand_macros({"program", GetParam().argument}, 3, personality_of(Compat::kTorchrun)),
            (Words{"program", GetParam().seen}));
}

INSTANTIATE_TEST_SUITE_P(LaunchContract, ExpandMacros,
                         testing::Values(Macro{"--out=r${local_rank}.txt", "--out=r3.txt"}, Macro{"$local_rank", "3"},
                                         Macro{"$local_rank_x", "$local_rank_x"}, Macro{"${local_rank}_x", "3_x"},
                                         Macro{"$$local_rank", "$local_rank"}, Macro{"$$$local_rank", "$3"},
                                         Macro{"cost$", "cost$"}, Macro{"$HOME", "$HOME"}, Macro{"${RANK}", "${RANK}"},
                                         Macro{"", ""}, Macro{"$$", "$"}, Macro{"${local_rank", "${local_rank"},
                                         Macro{"$local_rank$local_rank", "33"}, Macro{"$LOCAL_RANK", "$LOCAL_RANK"},
                                         Macro{"${}", "${}"}, Macro{"$1$", "$1$"}, Macro{"a$local_rank-b", "a3-b"}));

TEST(ExpandMacrosOfLrun, LeavesAShellsDollarsAloneAndHasAnEscape) {
  EXPECT_EQ(expand_macros({"sh", "kill $$; echo $local_rank ${local_rank} $HOME cost$"}, 3, Personality()),
            (Words{"sh", "kill $$; echo 3 3 $HOME cost$"}));
  EXPECT_EQ(expand_macros({"sh", "$$local_rank $${local_rank} $local_rank"}, 3, Personality()),
            (Words{"sh", "$local_rank ${local_rank} 3"}));
}

TEST(ExpandMacrosOf, AProgramsNameIsLeftAlone) {
  EXPECT_EQ(expand_macros({"$local_rank", "$local_rank"}, 12, Personality()), (Words{"$local_rank", "12"}));
}

LaunchRequest under_deepspeed(const Words& command) {
  LaunchRequest request = request_for("2");
  request.command = command;
  request.strategy = strategy_flag("deepspeed");
  return request;
}

/// The command of the worker of local rank 1.
Words second_worker(const LaunchRequest& request, const AllocatedNode& node = cpu_node()) {
  const LaunchPlan plan = plan_of(request, node);
  return command_of(plan, plan.nodes.front(), plan.nodes.front().workers.at(1), 0);
}

TEST(WorkerCommandOfDeepSpeed, PutsTheLocalRankBeforeTheArgumentsOfTheProgram) {
  EXPECT_EQ(second_worker(under_deepspeed({"train.py", "--deepspeed"})),
            (Words{"python3", "-u", "train.py", "--local_rank=1", "--deepspeed"}));
  EXPECT_EQ(second_worker(under_deepspeed({"./train"})), (Words{"./train", "--local_rank=1"}));
  LaunchRequest module = under_deepspeed({"pack.train", "a"});
  module.module = true;
  EXPECT_EQ(second_worker(module), (Words{"python3", "-u", "-m", "pack.train", "--local_rank=1", "a"}));
}

TEST(WorkerCommandOfDeepSpeed, LeavesTheLocalRankOutWhenAsked) {
  LaunchRequest request = under_deepspeed({"train.py", "--deepspeed"});
  request.no_local_rank = true;
  EXPECT_EQ(second_worker(request), (Words{"python3", "-u", "train.py", "--deepspeed"}));
  request.strategy = strategy_flag("ddp");
  request.no_local_rank = false;
  EXPECT_EQ(second_worker(request), (Words{"python3", "-u", "train.py", "--deepspeed"})) << "only under its strategy";
}

TEST(WorkerCommandOfDeepSpeed, TellsTheLocalRankOfTheVariableWhereGpusAreIsolated) {
  LaunchRequest request = under_deepspeed({"./train"});
  request.isolate_gpus = true;
  EXPECT_EQ(second_worker(request, gpu_node(2)), (Words{"./train", "--local_rank=0"}))
      << "DeepSpeed refuses an argument that differs from LOCAL_RANK";
}

}  // namespace
}  // namespace lrun::launcher
