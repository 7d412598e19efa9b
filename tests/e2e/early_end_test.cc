// A rank that ended with 0 while others waited for it, and where the ranks were when a run was stopped.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/duration.h"
#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"
#include "support/with_more_time.h"
#include "support/words.h"

namespace lrun::test {
namespace {

nlohmann::json result_of(const LrunProcess& lrun) {
  std::ifstream file(lrun.run_folder() / "result.json");
  return nlohmann::json::parse(file, nullptr, false);
}

/// Programs of Python without torch that fail as those with torch do. Each rank has an end of the pipe 'peer', which
/// the kernel closes when the rank has ended, as it closes gloo's connections.
class Programs {
 public:
  Programs() {
    std::filesystem::create_directories(folder_ / "site-packages");
    (void)folder_.script("site-packages/distributed_c10d.py",
                         "import os, time\n"
                         "def barrier():\n"
                         "    time.sleep(1000)\n"
                         "def all_reduce():\n"
                         "    if os.environ['RANK'] == '1':\n"
                         "        return open(os.environ['PEER'], 'w')\n"
                         "    open(os.environ['PEER']).read()\n"
                         "    raise RuntimeError('[/gloo/transport/tcp/pair.cc:547] Connection closed by peer')\n",
                         false);
    ::mkfifo((folder_ / "peer").c_str(), 0600);
  }
  [[nodiscard]] std::string train(const std::string& steps) const {
    return folder_.script("train.py",
                          "import os, sys, time\n"
                          "sys.path.insert(0, os.path.dirname(__file__) + '/site-packages')\n"
                          "os.environ['PEER'] = os.path.dirname(__file__) + '/peer'\n"
                          "import distributed_c10d as dist\n" +
                              steps);
  }
  /// A tool for stacks of programs that are not of Python.
  [[nodiscard]] std::string path_with_eu_stack(const std::string& script) const {
    (void)folder_.script("eu-stack", "#!/bin/sh\n" + script);
    return folder_.path().string() + ":" + std::getenv("PATH");
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

constexpr const char* kOneStepMore = "opened = dist.all_reduce()\n";  // line 5
constexpr const char* kWaitsFor = ": rank 0 waited for it in all_reduce at train.py:5: did it run fewer steps?\n";

TEST(EarlyEnd, IsTheCauseWhereAnotherRankLosesItsPeer) {
  const Programs programs;
  LrunProcess lrun({"-n", "2", programs.train(kOneStepMore)});
  EXPECT_EQ(lrun.wait().code, 1) << "that of the rank that failed: " << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), std::string("lrun: error: rank 1 exited with code 0") + kWaitsFor)) << lrun.err();
  EXPECT_TRUE(
      contains(lrun.err(),
               "lrun: note: rank 0 then exited with code 1: it lost the connection to another worker: RuntimeError: ["))
      << lrun.err();
  EXPECT_FALSE(contains(lrun.err(), "--settle")) << lrun.err();
  const auto result = result_of(lrun);
  EXPECT_EQ(result["culprit"]["rank"], 1);
  EXPECT_EQ(result["culprit"]["cause"], "ended_early");
  EXPECT_EQ(result["overruled"]["rank"], 0);
  EXPECT_EQ(result["exit_code"], 1);
}

TEST(EarlyEnd, IsNotTheCauseOfAnErrorOfAnotherRanksOwn) {
  const Programs programs;
  LrunProcess lrun({"-n", "2",
                    programs.train("if os.environ['RANK'] == '0':\n"
                                   "    open(os.environ['PEER']).read()\n"
                                   "    raise ValueError('no such metric')\n"
                                   "opened = open(os.environ['PEER'], 'w')\n")});
  EXPECT_EQ(lrun.wait().code, 1);
  EXPECT_TRUE(contains(lrun.err(), "lrun: error: rank 0 failed: ValueError: no such metric at train.py:7 (exit 1)\n"))
      << lrun.err();
}

TEST(EarlyEnd, IsTheCauseOnEveryNodeOfAJob) {
  const Programs programs;
  Job job({"--num_nodes", "2", "-n", "1", "--rdzv-backend", "c10d"});
  const Words program{programs.train(kOneStepMore)};
  LrunProcess& first = job.start({"--node-rank", "0"}, program);
  LrunProcess& second = job.start({"--node-rank", "1"}, program);
  for (LrunProcess* node : {&first, &second}) {
    EXPECT_EQ(node->wait().code, 1) << node->err();
    EXPECT_TRUE(contains(node->err(), std::string("lrun: error: rank 1 exited with code 0") + kWaitsFor))
        << node->err();
  }
}

TEST(EarlyEnd, IsNoRootOfTorchrunsSummary) {
  const Programs programs;
  LrunProcess lrun({"--compat=torchrun", "--nproc-per-node", "2", programs.train(kOneStepMore)});
  EXPECT_EQ(lrun.wait().code, 1);
  const auto root = lrun.err().find("Root Cause (first observed failure):\n");
  ASSERT_NE(root, std::string::npos) << lrun.err();
  EXPECT_TRUE(contains(lrun.err().substr(root), "rank      : 0 (local_rank: 0)\n  exitcode  : 1 ")) << lrun.err();
}

constexpr const char* kWaitsForEver =
    "if os.environ['RANK'] == '0':\n    print('waits', flush=True)\n    dist.barrier()\n";
/// The same with a rank whose stack only a tool can read.
const Words kWaitsWhereOnlyAToolReads = shell("[ $RANK = 1 ] || exec " LRUN_FAULT_WORKER " generated-code 0");

/// The launcher knows that the other rank has ended.
[[nodiscard]] bool one_is_left(LrunProcess& lrun) {
  return lrun.wait_for("waits") && lrun.read_until([&] {
    std::ifstream events(lrun.run_folder() / "events.jsonl");
    return contains({std::istreambuf_iterator<char>(events), {}}, "\"worker_ended\"");
  });
}

TEST(EarlyEnd, IsNamedWhenALimitEndsARunWhoseRanksWait) {
  const Programs programs;
  const std::string program = programs.train(kWaitsForEver);
  for (const char* const option : {"--timeout", "--hang-timeout"}) {
    with_more_time([&](int factor) -> std::string {
      const std::string limit = format_duration(2s * factor);
      LrunProcess lrun({"-n", "2", option, limit, program});
      EXPECT_EQ(lrun.wait().code, 124) << lrun.err();
      EXPECT_TRUE(contains(lrun.err(), "the run was stopped: ") && contains(lrun.err(), limit + " of " + option))
          << lrun.err();
      const bool named = contains(lrun.err(),
                                  ": rank 1 exited with code 0: rank 0 waits for it in barrier at train.py:7: did it "
                                  "run fewer steps?\n") &&
                         result_of(lrun)["culprit"]["cause"] == "ended_early";
      return named ? "" : "it does not name rank 1: " + lrun.err();
    });
  }
}

TEST(EarlyEnd, IsNamedAfterCtrlC) {
  const Programs programs;
  LrunProcess lrun({"-n", "2", programs.train(kWaitsForEver)});
  ASSERT_TRUE(one_is_left(lrun)) << lrun.err();
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
  EXPECT_TRUE(contains(lrun.err(), "the run was stopped: received SIGINT: rank 1 exited with code 0: ")) << lrun.err();
}

TEST(EarlyEnd, OfARankThatNobodyWaitsForIsNotedOnly) {
  const Programs programs;
  LrunProcess lrun({"-n", "2",
                    programs.train("def evaluate():\n    print('waits', flush=True)\n    time.sleep(1000)\n"
                                   "if os.environ['RANK'] == '0':\n    evaluate()\n")});
  ASSERT_TRUE(one_is_left(lrun)) << lrun.err();
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
  EXPECT_TRUE(contains(lrun.err(),
                       "lrun: note: seen before the stop: rank 0 is in clock_nanosleep(), called from "
                       "evaluate (train.py:7)\n"))
      << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), " and 1 had succeeded (rank 1 after ")) << lrun.err();
  EXPECT_FALSE(contains(lrun.err(), "lrun: error: ")) << lrun.err();
}

TEST(LookBeforeTheStop, IsNotWaitedForByASecondCtrlC) {
  const Programs programs;
  const std::string never = "echo > \"${0%/*}/looking\"; exec sleep 1000\n";
  LrunProcess lrun(joined({"-n", "2", "--grace", "1000s"}, kWaitsWhereOnlyAToolReads),
                   {.environment = {{"PATH", programs.path_with_eu_stack(never)}}});
  ASSERT_TRUE(one_is_left(lrun)) << lrun.err();
  lrun.signal(SIGINT);
  ASSERT_TRUE(lrun.wait_for("Ctrl-C again kills at once"));
  ASSERT_TRUE(lrun.read_until([&] { return std::filesystem::exists(programs.path() / "looking"); }));
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
  EXPECT_TRUE(contains(lrun.err(), "1 worker was killed at once") || contains(lrun.err(), "1 was killed at once"))
      << lrun.err();
}

TEST(LookBeforeTheStop, HasItsEndWhereAToolHasNone) {
  const Programs programs;
  LrunProcess lrun(joined({"-n", "2", "--grace", "1000s"}, kWaitsWhereOnlyAToolReads),
                   {.environment = {{"PATH", programs.path_with_eu_stack("exec sleep 1000\n")}}});
  ASSERT_TRUE(one_is_left(lrun)) << lrun.err();
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().signal_number, SIGINT) << "after seconds, and not the grace";
}

TEST(LookBeforeTheStop, SaysWhereTheRankWasThatAnotherGaveUpWaitingFor) {
  const Programs programs;
  const std::string program = programs.train(
      "def load():\n    opened = open(os.environ['PEER'], 'w')\n    time.sleep(1000)\n"
      "if os.environ['RANK'] == '1':\n    load()\n"
      "open(os.environ['PEER'])\n"
      "raise RuntimeError('Timed out waiting 3000ms for recv operation to complete')\n");
  LrunProcess lrun({"-n", "2", program});
  EXPECT_EQ(lrun.wait().code, 1) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(),
                       "lrun: note: seen before the stop: rank 1 is in clock_nanosleep(), called from load "
                       "(train.py:7)\n"))
      << lrun.err();
  EXPECT_FALSE(contains(lrun.err(), "--settle")) << lrun.err();
}

/// The same with torch itself. LRUN_TEST_PYTHON names a Python that has it.
TEST(EarlyEnd, IsTheCauseInAProgramOfTorch) {
  const char* const python = std::getenv("LRUN_TEST_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "LRUN_TEST_PYTHON names no Python that has torch";
  const TemporaryFolder folder;
  const std::string program = folder.script("train.py",
                                            "import torch, torch.distributed as dist\n"
                                            "dist.init_process_group('gloo')\n"
                                            "value = torch.ones(4)\n"
                                            "for step in range(3 if dist.get_rank() == 1 else 4):\n"
                                            "    dist.all_reduce(value)\n"
                                            "dist.destroy_process_group()\n");
  LrunProcess lrun({"-n", "2", python, program},
                   {.environment = {{"GLOO_SOCKET_IFNAME", "lo"}, {"PYTHONWARNINGS", "ignore"}}});
  EXPECT_EQ(lrun.wait().code, 1) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), std::string("lrun: error: rank 1 exited with code 0") + kWaitsFor)) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
