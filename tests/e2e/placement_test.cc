#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "support/lrun_process.h"
#include "support/mentions.h"

namespace lrun::test {
namespace {

/// A machine with these GPUs, as the fake driver of the unit tests plays it.
LrunProcess::Options machine(std::map<std::string, std::string> driver) {
  driver["LD_LIBRARY_PATH"] = FAKE_NVML_FOLDER;
  return {.environment = std::move(driver)};
}

TEST(Placement, GivesWorkersTheGpusThatTheDriverCounts) {
  LrunProcess lrun({"--devices", "GPU-b,2", "sh", "-c", "echo $LRUN_DEVICES of $CUDA_VISIBLE_DEVICES"},
                   machine({{"FAKE_NVML_GPUS", "4"}}));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.out().find("[0] cuda:0 of GPU-bx,2\n"), std::string::npos) << lrun.out();
  EXPECT_NE(lrun.out().find("[1] cuda:1 of GPU-bx,2\n"), std::string::npos) << lrun.out();
}

TEST(Placement, RefusesABusyGpuBeforeAnythingIsStarted) {
  const auto busy = machine({{"FAKE_NVML_GPUS", "2"}, {"FAKE_NVML_PROCESS", "1"}});
  LrunProcess refused({"--devices", "1", "echo", "started"}, busy);
  EXPECT_EQ(refused.wait().code, 125);
  EXPECT_EQ(refused.out(), "");
  EXPECT_NE(refused.err().find("is busy: process 1 "), std::string::npos) << refused.err();
  EXPECT_NE(refused.err().find("use '--devices 1,'"), std::string::npos) << refused.err();
  LrunProcess shared({"--devices", "1", "--share-gpus", "echo", "started"}, busy);
  EXPECT_EQ(shared.wait().code, 0);
  EXPECT_EQ(shared.err(), "");
}

TEST(Placement, OfATaskOfJsrunIsTheOneGpuThatItIsShown) {
  std::map<std::string, std::string> first{
      {"JSM_NAMESPACE_RANK", "0"},       {"JSM_NAMESPACE_SIZE", "2"}, {"JSM_NAMESPACE_LOCAL_RANK", "0"},
      {"JSM_NAMESPACE_LOCAL_SIZE", "2"}, {"LSB_JOBID", "42"},         {"FAKE_NVML_GPUS", "1"}};
  LrunProcess one_for_both({"--dry-run", "true"}, machine(first));
  EXPECT_EQ(one_for_both.wait().code, 125);
  EXPECT_THAT(one_for_both.err(), mentions({"this node has 1 GPU, and 2 launchers"}));
  first["FAKE_NVML_GPUS"] = "2";
  first["CUDA_VISIBLE_DEVICES"] = "1";
  LrunProcess own({"--dry-run", "true"}, machine(first));
  EXPECT_EQ(own.wait().code, 0) << own.err();
  EXPECT_NE(own.out().find("LOCAL_RANK=0 CUDA_VISIBLE_DEVICES=1 LRUN_DEVICES=cuda:0"), std::string::npos) << own.out();
}

TEST(Placement, IsToldByStatusWithTheMemoryAndTimeOfTheGpu) {
  LrunProcess run({"-n", "2", "sh", "-c", "echo pid $$; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] pid ") && run.wait_for("[1] pid "));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(run.run_folder() / "control.sock"); }));
  const std::string out = run.out();
  const std::string pid = std::to_string(std::stoi(out.substr(out.find("[1] pid ") + 8)));
  LrunProcess::Options options = machine({{"FAKE_NVML_GPUS", "2"}, {"FAKE_NVML_PROCESS", pid}});
  options.environment["LRUN_STATE"] = run.state().string();
  LrunProcess status({"status"}, options);
  EXPECT_EQ(status.wait().code, 0) << status.err();
  EXPECT_THAT(status.out(), ::testing::ContainsRegex("  GPU  GPU MEM  GPU%  LAST LINE\n"));
  EXPECT_THAT(status.out(), ::testing::ContainsRegex("\n  1     running  .*  0    300M     87%   pid " + pid + "\n"));
  options.environment["FAKE_NVML_TROUBLE"] = "hang";
  LrunProcess without(std::vector<std::string>{"status"}, options);
  EXPECT_EQ(without.wait().code, 0) << without.err();
  EXPECT_THAT(without.out(), ::testing::Not(::testing::HasSubstr("GPU")));
  EXPECT_THAT(without.out(), ::testing::ContainsRegex("\n  1     running  .*  pid " + pid + "\n"));
}

TEST(Placement, OutlivesADriverThatCrashes) {
  LrunProcess lrun({"--devices", "1", "sh", "-c", "echo on $LRUN_DEVICES"}, machine({{"FAKE_NVML_TROUBLE", "crash"}}));
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.out(), "[0] on cpu\n");
  EXPECT_THAT(lrun.err(), mentions({"lrun: warning: using CPUs: ", "NVIDIA driver", "SIGSEGV\n"}));
}

TEST(Placement, ThatIsWrongForAllTasksOfAStepIsToldByOne) {
  for (const char* const rank : {"0", "1"}) {
    LrunProcess lrun({"--nproc-per-node", "2", "true"}, {.environment = {{"SLURM_JOB_ID", "7"},
                                                                         {"SLURM_STEP_ID", "0"},
                                                                         {"SLURM_STEP_NODELIST", "h1"},
                                                                         {"SLURM_STEP_TASKS_PER_NODE", "3"},
                                                                         {"SLURM_NODEID", "0"},
                                                                         {"SLURM_PROCID", rank},
                                                                         {"SLURM_LOCALID", rank}}});
    EXPECT_EQ(lrun.wait().code, 125);
    EXPECT_EQ(lrun.err().empty(), std::string(rank) == "1") << lrun.err();
  }
}

/// What comes behind `label` in lines of '[rank] label value'.
std::set<std::string> values_of(const std::string& output, const std::string& label) {
  std::set<std::string> values;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto place = line.find(label);
    if (place != std::string::npos) values.insert(line.substr(place + label.size()));
  }
  return values;
}

TEST(Placement, BindsWorkersToCoresOfTheirOwnAndSaysSo) {
  LrunProcess lrun({"-v", "--devices", "2", "--accelerator", "cpu", "--bind", "core", "sh", "-c",
                    "grep Cpus_allowed_list /proc/self/status; echo threads $OMP_NUM_THREADS"});
  const LrunEnd end = lrun.wait();
  if (end.code == 125 && lrun.err().find("needs a core for each device") != std::string::npos) {
    GTEST_SKIP() << "one core, and no two workers can have their own: " << lrun.err();
  }
  EXPECT_EQ(end.code, 0) << lrun.err();
  EXPECT_EQ(values_of(lrun.out(), "Cpus_allowed_list:\t").size(), 2U) << "not the same CPUs: " << lrun.out();
  EXPECT_FALSE(values_of(lrun.out(), "threads ").contains("")) << lrun.out();
  EXPECT_NE(lrun.err().find("local rank 1: CPUs "), std::string::npos) << lrun.err();
}

TEST(Placement, ShowsTheBindingInThePlan) {
  LrunProcess lrun({"--devices", "2", "--accelerator", "cpu", "--bind=numa", "--dry-run", "true"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.out().find("binding       numa"), std::string::npos) << lrun.out();
  EXPECT_NE(lrun.out().find("\nbinding:\n  local rank"), std::string::npos) << lrun.out();
}

}  // namespace
}  // namespace lrun::test
