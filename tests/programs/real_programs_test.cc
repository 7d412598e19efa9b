// Programs of other people's frameworks under lrun: each does the training of small_problem.py with two ranks and has
// to come to what one process comes to. LRUN_PROGRAMS_PYTHON names a Python that has them; tools/dev/programs.sh makes
// one.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>

#include "support/launchers_of_a_job.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

/// The rest of each line behind `mark`.
std::multiset<std::string> said_behind(const std::string& out, std::string_view mark) {
  std::multiset<std::string> said;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find(mark); at != std::string::npos) said.insert(line.substr(at + mark.size()));
  }
  return said;
}

/// The ranks' reports, without the prefix of lrun: "rank=0 world=2 restart=0 loss=…".
std::multiset<std::string> results(const std::string& out) { return said_behind(out, "result "); }

std::string loss_in(const std::string& result) {
  const auto at = result.find("loss=");
  return at == std::string::npos ? std::string() : result.substr(at, std::string("loss=0.12345678").size());
}

class RealPrograms : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* const python = std::getenv("LRUN_PROGRAMS_PYTHON");
    if (python == nullptr) GTEST_SKIP() << "LRUN_PROGRAMS_PYTHON names no Python with the frameworks";
    python_ = python;
  }

  /// \param options  of lrun, how many ranks among them.
  std::unique_ptr<LrunProcess> start(Words options, const std::string& program, const Words& arguments = {}) const {
    options.push_back(python_);
    return start_script(std::move(options), program, arguments);
  }

  /// The same with the script itself as PROGRAM, unless `options` end with another.
  std::unique_ptr<LrunProcess> start_script(Words options, const std::string& program, const Words& arguments) const {
    options.push_back(LRUN_PROGRAMS "/" + program + ".py");
    options.insert(options.end(), arguments.begin(), arguments.end());
    // The source folder stays as it is, nothing is looked for in the network, and a host name need not resolve.
    std::map<std::string, std::string> environment{{"PYTHONDONTWRITEBYTECODE", "1"}, {"PYTHON_EXEC", python_},
                                                   {"PYTHONWARNINGS", "ignore"},     {"GLOO_SOCKET_IFNAME", "lo"},
                                                   {"TP_SOCKET_IFNAME", "lo"},       {"HF_HUB_OFFLINE", "1"}};
    if (!state_.empty()) environment["LRUN_STATE"] = state_;
    return std::make_unique<LrunProcess>(options, LrunProcess::Options{.environment = environment});
  }

  /// The loss of the same training in one process, to eight digits.
  std::string loss_of_one_process() const {
    const auto run = start({"--devices", "1"}, "small_problem");
    EXPECT_EQ(run->wait().code, 0) << run->err();
    const auto told = results(run->out());
    return told.size() == 1 ? loss_in(*told.begin()) : std::string();
  }

  /// Both ranks reported a world of two, and the loss of one process.
  void expect_trained(const std::string& out, const std::string& err, int restart = 0) const {
    const auto told = results(out);
    const std::string loss = loss_of_one_process();
    ASSERT_FALSE(loss.empty());
    ASSERT_EQ(told.size(), 2U) << out << err;
    int rank = 0;
    for (const std::string& result : told) {
      const std::string expected = "rank=" + std::to_string(rank++) + " world=2 restart=" + std::to_string(restart);
      EXPECT_TRUE(contains(result, expected + " " + loss)) << result << "\nexpected: " << expected << " " << loss;
    }
  }

  std::string python_;
  std::string state_;  ///< folder that runs share; empty: each has its own
};

std::string name_of(const testing::TestParamInfo<const char*>& info) { return info.param; }

class Training : public RealPrograms {};

TEST_P(Training, OfTwoRanksComesToTheLossOfOneProcess) {
  const auto run = start({"--devices", "2"}, GetParam());
  EXPECT_EQ(run->wait().code, 0) << run->out() << run->err();
  expect_trained(run->out(), run->err());
}

TEST_P(Training, EndsWithTheExceptionOfTheRankThatRaisedIt) {
  const auto run = start({"--devices", "2"}, GetParam(), {"--fail", "always"});
  const LrunEnd end = run->wait();
  ASSERT_TRUE(end.exited);
  // With torch's threads still there an interpreter that ends of an exception may abort in its exit.
  const bool aborted = end.code == 134;
  EXPECT_EQ(end.code, aborted ? 134 : 1) << run->err();
  std::string verdict;
  std::istringstream lines(run->err());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("lrun: error: ")) verdict = line;
  }
  EXPECT_TRUE(contains(verdict, " failed: ValueError: bad batch at small_problem.py:")) << run->err();
  EXPECT_TRUE(contains(verdict, aborted ? "(SIGABRT" : "(exit 1)")) << verdict;
  // The exception of a remote call is raised where the call was made.
  const bool in_the_caller = GetParam() == std::string("torch_rpc");
  EXPECT_TRUE(contains(verdict, in_the_caller ? "error: rank 0 failed: " : "error: rank 1 failed: ")) << verdict;
}

class Forked : public RealPrograms {};

TEST_P(Forked, RanksOfAServerThatHasLearnedComeToTheSameLoss) {
  const TemporaryFolder state;
  state_ = state.path().string();
  const auto learns = start({"--devices", "2", "--preload", "auto"}, GetParam());
  EXPECT_EQ(learns->wait().code, 0) << learns->out() << learns->err();
  const auto run = start({"--devices", "2", "--preload", "auto"}, GetParam());
  EXPECT_EQ(run->wait().code, 0) << run->out() << run->err();
  EXPECT_FALSE(contains(run->err(), "every worker imports by itself")) << run->err();
  expect_trained(run->out(), run->err());
}

TEST_F(RealPrograms, GoOnFromTheMemoryFolderAsIfNobodyHadKilledARank) {
  const TemporaryFolder folder;
  const auto run = [&](const char* state) {
    return start({"-n", "2", "--max-restarts", "2", "--restart-backoff", "0s"}, "../../examples/resume",
                 {(folder / state).string(), "995"});
  };
  const auto undisturbed = run("undisturbed.pt");
  ASSERT_EQ(undisturbed->wait().code, 0) << undisturbed->err();
  const auto disturbed = run("disturbed.pt");
  for (std::size_t begun = 0; begun < 2; ++begun) {
    // Further steps of the present attempt: behind the line with which it went on.
    ASSERT_TRUE(disturbed->read_until([&] {
      std::size_t at = 0;
      for (std::size_t i = 0; i < begun && at != std::string::npos; ++i) at = disturbed->out().find("goes on", at + 1);
      return at != std::string::npos && disturbed->out().find("] step ", at) != std::string::npos;
    })) << disturbed->err();
    ASSERT_EQ(::kill(pid_of_rank(*disturbed, 1), SIGKILL), 0);
  }
  ASSERT_EQ(disturbed->wait().code, 0) << disturbed->err();
  const auto parameters = said_behind(disturbed->out(), "parameters ");
  EXPECT_EQ(parameters.size(), 2U);
  EXPECT_EQ(parameters.count(*parameters.begin()), 2U) << "all ranks have the same";
  EXPECT_EQ(parameters, said_behind(undisturbed->out(), "parameters "));
  const auto begun = said_behind(disturbed->out(), "goes on from ");
  EXPECT_EQ(begun.size(), 2U) << "after each kill";
  EXPECT_NE(*begun.begin(), *begun.rbegin());
  for (const std::string& place : begun) EXPECT_TRUE(place.ends_with(" in memory")) << place;
  const auto later = run("disturbed.pt");
  ASSERT_EQ(later->wait().code, 0) << later->err();
  EXPECT_EQ(said_behind(later->out(), "goes on from "), std::multiset<std::string>{"step 995 on disk"});
}

INSTANTIATE_TEST_SUITE_P(RealPrograms, Forked, testing::Values("lightning_trainer", "accelerate_loop"), name_of);

INSTANTIATE_TEST_SUITE_P(RealPrograms, Training,
                         testing::Values("torch_ddp", "torch_rpc", "lightning_trainer", "lightning_fabric",
                                         "accelerate_loop"),
                         name_of);
INSTANTIATE_TEST_SUITE_P(DeepSpeed, Training, testing::Values("deepspeed_init"), name_of);

class DeepSpeedPrograms : public RealPrograms {};

TEST_F(DeepSpeedPrograms, RunAsUnderTheirOwnLauncher) {
  const Words arguments{"--deepspeed", "--deepspeed_config", LRUN_PROGRAMS "/deepspeed_config.json"};
  const auto run = start_script({"--strategy", "deepspeed", "--num_gpus", "2", "--accelerator", "cpu"},
                                "deepspeed_train", arguments);
  EXPECT_EQ(run->wait().code, 0) << run->out() << run->err();
  const auto told = results(run->out());
  ASSERT_EQ(told.size(), 2U) << run->out() << run->err();
  const double expected = std::stod(loss_of_one_process().substr(5));
  for (const std::string& result : told) {
    EXPECT_NEAR(std::stod(loss_in(result).substr(5)), expected, 1e-5) << "in single precision: " << result;
    EXPECT_TRUE(contains(result, "world=2")) << result;
  }
}

TEST_F(DeepSpeedPrograms, SeeWhatTheirOwnLauncherGives) {
  const auto ours = start_script({"--strategy", "deepspeed", "--num_gpus", "2", "--accelerator", "cpu"},
                                 "launcher_contract", {"--deepspeed", "a b"});
  EXPECT_EQ(ours->wait().code, 0) << ours->err();
  // DeepSpeed's runner is the worker of an lrun, which ends it should the test fail.
  const auto theirs = start({"--devices", "1"}, "deepspeed_runner",
                            {"--num_gpus", "2", "--master_port", std::to_string(free_port()),
                             LRUN_PROGRAMS "/launcher_contract.py", "--deepspeed", "a b"});
  EXPECT_EQ(theirs->wait().code, 0) << theirs->err();
  EXPECT_EQ(results(ours->out()), results(theirs->out())) << theirs->err();
  EXPECT_EQ(results(ours->out()).size(), 2U) << ours->out();
}

/// Where that Python has Horovod, which has to be compiled for its torch (0.28.1, with C++17 for C++14 in its CMake
/// files).
class RealHorovod : public RealPrograms {
 protected:
  void SetUp() override {
    RealPrograms::SetUp();
    if (IsSkipped()) return;
    LrunProcess look({python_, "-c", "import horovod.torch"});
    if (look.wait().code != 0) GTEST_SKIP() << "the Python of LRUN_PROGRAMS_PYTHON has no Horovod";
  }
};

TEST_F(RealHorovod, OfTwoRanksComesToTheLossOfOneProcess) {
  const auto run = start({"--strategy", "horovod", "--devices", "2"}, "horovod_torch");
  EXPECT_EQ(run->wait().code, 0) << run->out() << run->err();
  expect_trained(run->out(), run->err());
}

TEST_F(RealHorovod, MeetsAgainAfterARestart) {
  const auto run =
      start({"--strategy", "horovod", "--devices", "2", "--max-restarts", "1"}, "horovod_torch", {"--fail", "once"});
  EXPECT_EQ(run->wait().code, 0) << run->err();
  expect_trained(run->out(), run->err(), 1);
}

TEST_F(RealHorovod, RunsOnSeveralNodes) {
  const Words options{"--strategy", "horovod", "--num_nodes",     "2",
                      "--devices",  "1",       "--rdzv-endpoint", "127.0.0.1:" + std::to_string(free_port())};
  const auto first = start(options, "horovod_torch");
  const auto second = start(options, "horovod_torch");
  EXPECT_EQ(first->wait().code, 0) << first->err();
  EXPECT_EQ(second->wait().code, 0) << second->err();
  expect_trained(first->out() + second->out(), first->err() + second->err());
}

TEST_F(RealPrograms, PassOnTheExitCodeOfOneRank) {
  const auto run = start({"--devices", "2"}, "torch_ddp", {"--exit-code", "17"});
  EXPECT_EQ(run->wait().code, 17) << run->err();
  EXPECT_TRUE(contains(run->err(), "lrun: error: rank 1 exited with code 17")) << run->err();
}

TEST_F(RealPrograms, FindTheirLauncherThroughLightningAlsoInsideOfSlurm) {
  Words options{"--devices", "2"};
  for (const char* const variable :
       {"SLURM_NTASKS=2", "SLURM_JOB_NAME=train", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NODEID=0"}) {
    options.insert(options.end(), {"--env", variable});  // what a batch script has beside a launcher of its own
  }
  const auto run = start_script(options, "lightning_detection", {});
  EXPECT_EQ(run->wait().code, 0) << run->err();
  const std::multiset<std::string> expected{"TorchElasticEnvironment rank=0 local=0 world=2 started=True",
                                            "TorchElasticEnvironment rank=1 local=1 world=2 started=True"};
  EXPECT_EQ(results(run->out()), expected) << run->out() << run->err();
}

TEST_F(RealPrograms, MeetAgainAfterARestart) {
  const auto run = start({"--devices", "2", "--max-restarts", "1"}, "torch_ddp", {"--fail", "once"});
  EXPECT_EQ(run->wait().code, 0) << run->err();
  expect_trained(run->out(), run->err(), 1);
}

TEST_F(RealPrograms, RunOnSeveralNodes) {
  const Words options{
      "--num_nodes", "2", "--devices", "1", "--rdzv-endpoint", "127.0.0.1:" + std::to_string(free_port())};
  const auto first = start(options, "lightning_trainer", {"--nodes", "2"});
  const auto second = start(options, "lightning_trainer", {"--nodes", "2"});
  EXPECT_EQ(first->wait().code, 0) << first->err();
  EXPECT_EQ(second->wait().code, 0) << second->err();
  EXPECT_EQ(results(first->out()).size(), 1U) << first->out();
  expect_trained(first->out() + second->out(), first->err() + second->err());
}

}  // namespace
}  // namespace lrun::test
