#include "cli/environment_values.h"

#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(EnvironmentValues, AFlagPrecedesOurVariableThenTorchrunsThenTheDefault) {
  const Variables both{{"LRUN_NPROC_PER_NODE", "3"}, {"PET_NPROC_PER_NODE", "4"}};
  const auto workers = [](int count, Source source, const std::string& origin) {
    return Setting<DeviceRequest>{{DeviceRequest::Kind::kProcesses, count}, source, origin};
  };
  EXPECT_EQ(request_of({"-n2", "p"}, both).nproc_per_node, workers(2, Source::kFlag, "-n"));
  EXPECT_EQ(request_of({"p"}, both).nproc_per_node, workers(3, Source::kEnvironment, "LRUN_NPROC_PER_NODE"));
  EXPECT_EQ(request_of({"p"}, {{"PET_NPROC_PER_NODE", "4"}}).nproc_per_node,
            workers(4, Source::kEnvironment, "PET_NPROC_PER_NODE"));
  EXPECT_EQ(request_of({"p"}).nproc_per_node, Setting<DeviceRequest>{});
}

TEST(EnvironmentValues, EveryValueComesFromItsVariable) {
  const LaunchRequest request = request_of({"p"}, {{"LRUN_DEVICES", "2"},
                                                   {"PET_NNODES", "4"},
                                                   {"LRUN_STRATEGY", "DP"},
                                                   {"LRUN_SEED", "7"},
                                                   {"PET_MASTER_PORT", "1234"},
                                                   {"LRUN_GRACE", "5"},
                                                   {"PET_LOG_DIR", "logs"},
                                                   {"LRUN_VERBOSE", "2"},
                                                   {"LRUN_DRY_RUN", "1"},
                                                   {"PET_NO_PYTHON", "1"},
                                                   {"PET_RUN_PATH", "1"},
                                                   {"PET_VIRTUAL_LOCAL_RANK", "1"}});
  EXPECT_EQ(text_of(request.devices.value), "2");
  EXPECT_EQ(request.num_nodes.value, 4);
  EXPECT_EQ(text_of(request.strategy.value), "dp");
  EXPECT_EQ(request.seed, (Setting<std::optional<std::uint64_t>>{7, Source::kEnvironment, "LRUN_SEED"}));
  EXPECT_EQ(request.master_port.value, 1234);
  EXPECT_EQ(request.grace.value, Duration(5000));
  EXPECT_EQ(request.log_dir.value, "logs");
  EXPECT_EQ(request.verbosity, 2);
  EXPECT_EQ(request.dry_run, DryRun::kText);
  EXPECT_TRUE(request.no_python);
  EXPECT_TRUE(request.run_path);
  EXPECT_TRUE(request.isolate_gpus);
}

TEST(EnvironmentValues, InsideARunTheParentsPlanIsNotInherited) {
  const LaunchRequest request = request_of({"p"}, {{"LRUN_RUN_ID", "r1"},
                                                   {"LRUN_STRATEGY", "dp"},
                                                   {"LRUN_DEVICES", "garbage"},
                                                   {"LRUN_SEED", "7"},
                                                   {"PET_NPROC_PER_NODE", "2"}});
  EXPECT_FALSE(request.strategy.given());
  EXPECT_FALSE(request.devices.given());
  EXPECT_FALSE(request.seed.given());
  EXPECT_EQ(text_of(request.nproc_per_node.value), "2") << "PET_ variables are inherited, as with torchrun";
}

TEST(EnvironmentValues, AVariableThatAFlagHidesIsNotRead) {
  EXPECT_EQ(refusal({"--max-restarts=0", "p"}, {{"PET_MAX_RESTARTS", "x"}}), "(accepted)");
  EXPECT_EQ(refusal({"p"}, {{"PET_MAX_RESTARTS", "x"}}),
            "lrun: error: 'PET_MAX_RESTARTS=x': not a whole number; allowed: 0 to 2147483647\n"
            "lrun: hint: for example 'PET_MAX_RESTARTS=3'\n");
}

TEST(EnvironmentValues, AnEmptyVariableIsNothingForUsAndAValueForTorchrun) {
  EXPECT_FALSE(request_of({"p"}, {{"LRUN_DEVICES", ""}}).devices.given());
  EXPECT_EQ(refusal({"p"}, {{"PET_NODE_RANK", ""}}),
            "lrun: error: 'PET_NODE_RANK=': not a whole number; allowed: 0 to 65535\n"
            "lrun: hint: for example 'PET_NODE_RANK=0'\n");
  EXPECT_EQ(refusal({"p"}, {{"PET_RDZV_ENDPOINT", ""}}), "(accepted)");
  EXPECT_EQ(refusal({"p"}, {{"PET_STANDALONE", ""}, {"PET_RDZV_ENDPOINT", "a:1"}}), "(accepted)")
      << "an empty PET_STANDALONE is true: Kubeflow writes it so";
}

TEST(EnvironmentValues, SwitchesReadYesAndNo) {
  EXPECT_FALSE(request_of({"p"}, {{"PET_MODULE", "0"}}).module);
  EXPECT_TRUE(request_of({"p"}, {{"PET_MODULE", "1"}}).module);
  EXPECT_TRUE(request_of({"p"}, {{"LRUN_MODULE", "true"}}).module);
  EXPECT_FALSE(request_of({"p"}, {{"LRUN_NO_PYTHON", "off"}}).no_python);
  EXPECT_TRUE(request_of({"-m", "p"}, {{"PET_MODULE", "0"}}).module) << "a switch on the line is on";
  EXPECT_THAT(refusal({"p"}, {{"PET_STANDALONE", "maybe"}}),
              mentions({"'PET_STANDALONE=maybe'", "1", "0", "'PET_STANDALONE=1'"}));
}

TEST(EnvironmentValues, RefusalsNameTheVariable) {
  EXPECT_THAT(refusal({"p"}, {{"LRUN_STRATEGY", "dpd"}}), mentions({"'LRUN_STRATEGY=dpd'", "did you mean 'ddp'?"}));
  EXPECT_THAT(refusal({"p"}, {{"PET_NNODES", "4:1"}}), mentions({"'PET_NNODES=4:1'", "'PET_NNODES=1:4'"}));
  EXPECT_EQ(refusal({"p"}, {{"PET_NODE_RANK", "x"}}),
            "lrun: error: 'PET_NODE_RANK=x': not a whole number; allowed: 0 to 65535\n"
            "lrun: hint: for example 'PET_NODE_RANK=0'\n");
}

TEST(EnvironmentValues, AnUnknownVariableIsOneWarning) {
  const auto parsed = parse({"p"}, {{"LRUN_DEVICE", "2"}, {"LRUN_XYZZYXYZZY", "1"}, {"LRUNX", "1"}, {"PET_FOO", "1"}});
  EXPECT_EQ(parsed.warnings,
            (std::vector<std::string>{"variable 'LRUN_DEVICE' is unknown and ignored; did you mean 'LRUN_DEVICES'?",
                                      "variable 'LRUN_XYZZYXYZZY' is unknown and ignored"}));
  EXPECT_EQ(parse({"p"}, {{"LRUN_DEVICES_PER_NODE", "2"}}).warnings,
            (std::vector<std::string>{
                "variable 'LRUN_DEVICES_PER_NODE' is unknown and ignored; did you mean 'LRUN_DEVICES'?"}));
  EXPECT_EQ(parse({"p"}, {{"LRUN_TASKS_PER_NODE", "2"}}).warnings,
            (std::vector<std::string>{"variable 'LRUN_TASKS_PER_NODE' is unknown and ignored"}))
      << "LRUN_NTASKS_PER_NODE is no variable for people";
  EXPECT_EQ(parse({"p"}, {{"LRUN_BOGUS", "1"}}).warnings,
            (std::vector<std::string>{"variable 'LRUN_BOGUS' is unknown and ignored"}))
      << "the prefix alone makes it no LRUN_JOBS";
  EXPECT_EQ(
      parse({"p"}, {{"LRUN_NNODES", "2"}}).warnings,
      (std::vector<std::string>{"variable 'LRUN_NNODES' is unknown and ignored; did you mean 'LRUN_NUM_NODES'?"}));
  EXPECT_EQ(parse({"p"}, {{"LRUN_NPROC", "2"}}).warnings,
            (std::vector<std::string>{"variable 'LRUN_NPROC' is unknown and ignored; did you mean "
                                      "'LRUN_NPROC_PER_NODE'?"}));
}

TEST(EnvironmentValues, ContractVariablesAreKnown) {
  Variables variables;
  for (const char* const name :
       {"LRUN_RUN_ID",      "LRUN_STRATEGY",     "LRUN_DEVICES",     "LRUN_SEED",
        "LRUN_PROGRESS_FD", "LRUN_RESUME",       "LRUN_ACCELERATOR", "LRUN_PROCESS_GROUP_BACKEND",
        "LRUN_NUM_NODES",   "LRUN_STATE",        "LRUN_CACHE",       "LRUN_LIBTORCH",
        "LRUN_JOB_SECRET",  "LRUN_LAUNCH_CALL",  "LRUN_COMPAT",      "LRUN_NO_CGROUP",
        "LRUN_NO_PIDFD",    "LRUN_WITH_PYTORCH", "LRUN_SRUN_PORT",   "LRUN_NTASKS_PER_NODE",
        "LRUN_SRUN_FOLDER", "LRUN_MODULE_PYTHON"}) {
    variables[name] = "1";
  }
  EXPECT_TRUE(warn_about_unknown_variables(Environment(variables)).empty());
}

}  // namespace
}  // namespace lrun::launcher
