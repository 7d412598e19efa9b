#include "inspect/judge_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

constexpr std::uint64_t kGiB = 1ULL << 30U;
using Severity = Finding::Severity;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A healthy machine with two GPUs.
MachineFacts healthy() {
  MachineFacts facts;
  facts.shared_memory = {16 * kGiB, 16 * kGiB};
  facts.infiniband = true;
  facts.open_files = 1'048'576;
  facts.host_name = "node1";
  facts.host_addresses = {"10.0.0.1"};
  facts.cpus = 64;
  facts.machine_gpus = {GpuAnswer::kCounted, {{0, "GPU-a", "0"}, {1, "GPU-b", "1"}}, ""};
  facts.visible_gpus = facts.machine_gpus;
  facts.driver = {"570.00", "570.00", 12080, 2, 1, {}, {}, {}};
  facts.nvidia_hardware = true;
  facts.clock_seconds = 1'800'000'000;
  facts.state_folder = "/home/me/.local/state/lrun";
  facts.state_room = {100 * kGiB, 50 * kGiB};
  return facts;
}

PythonFacts python_with(const TorchFacts& torch) {
  return {.choice = {},
          .answer = PythonFacts::Answer::kGiven,
          .path = "/usr/bin/python3",
          .version = "3.11.2",
          .torch = torch};
}

/// The one finding; fails the test when there is another number of them.
Finding only(const MachineFacts& facts) {
  const std::vector<Finding> findings = judge_machine(facts);
  EXPECT_EQ(findings.size(), 1U);
  if (findings.empty()) return {};
  EXPECT_NE(findings.front().fix, "") << findings.front().text;
  return findings.front();
}

TEST(JudgeMachine, FindsNothingOnAHealthyOne) {
  EXPECT_EQ(judge_machine(healthy()), std::vector<Finding>());
  MachineFacts laptop = healthy();
  laptop.machine_gpus = laptop.visible_gpus = {GpuAnswer::kNoLibrary, {}, "there is no libnvidia-ml.so.1"};
  laptop.driver = {};
  laptop.nvidia_hardware = laptop.infiniband = false;
  laptop.locked_memory = 8 << 20U;
  EXPECT_EQ(judge_machine(laptop), std::vector<Finding>()) << "no GPU and no InfiniBand is no fault";
}

TEST(JudgeMachine, NeedsNoPythonAndNoTorch) {
  MachineFacts facts = healthy();
  facts.python = {};
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>());
  facts.python = python_with({});
  facts.python.torch.reset();
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>());
}

TEST(JudgeMachine, WantsAPythonThatTheUserNamed) {
  MachineFacts facts = healthy();
  facts.python = {.choice = {.program = "/nowhere/python", .reason = "PYTHON_EXEC", .is_named = true}};
  EXPECT_THAT(only(facts).text, HasSubstr("PYTHON_EXEC is '/nowhere/python'"));
  facts.python = {.answer = PythonFacts::Answer::kFailed, .error = "No module named 'encodings'"};
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("'python3'"), HasSubstr("No module named 'encodings'")));
}

TEST(JudgeMachine, WantsATorchForTheGpusAndTheirDriver) {
  MachineFacts facts = healthy();
  facts.python = python_with({.version = "2.6.0+cpu"});
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("torch 2.6.0+cpu of 'python3'"), HasSubstr("without CUDA")));
  EXPECT_THAT(only(facts).fix, HasSubstr("CUDA 12.8 or older"));
  facts.python = python_with({.version = "2.11.0+cu130", .cuda = "13.0"});
  EXPECT_EQ(only(facts).severity, Severity::kProblem);
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("needs CUDA 13.0"), HasSubstr("CUDA 12.8 at most")));
  facts.python = python_with({.version = "2.8.0+cu129", .cuda = "12.9"});
  EXPECT_EQ(only(facts).severity, Severity::kNote) << "a driver runs all of its own major version";
  for (const char* const cuda : {"12.8", "11.8", "12", "x.y", "99999999999.1", "12.-4"}) {
    facts.python = python_with({.version = "2.6.0", .cuda = cuda});
    EXPECT_EQ(judge_machine(facts), std::vector<Finding>()) << cuda;
  }
  facts.driver.cuda = 0;
  facts.python = python_with({.version = "2.11.0", .cuda = "13.0"});
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>()) << "the driver says nothing about CUDA";
}

TEST(JudgeMachine, ComplainsOfTorchOnlyWhereThereAreGpusOfNvidia) {
  MachineFacts facts = healthy();
  facts.python = python_with({.version = "2.6.0+cpu", .missing_nccl = "nvidia-nccl-cu12==2.21.5"});
  facts.machine_gpus.vendor = GpuVendor::kAmd;
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>());
  facts = healthy();
  facts.machine_gpus = facts.visible_gpus = {GpuAnswer::kNoLibrary, {}, ""};
  facts.nvidia_hardware = false;
  facts.python = python_with({.version = "2.6.0+cpu"});
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>());
}

TEST(JudgeMachine, WantsTheNcclOfTorch) {
  MachineFacts facts = healthy();
  facts.python = python_with({.version = "2.6.0+cu124", .cuda = "12.4", .missing_nccl = "nvidia-nccl-cu12==2.21.5"});
  EXPECT_EQ(only(facts).id, "nccl");
  EXPECT_EQ(only(facts).fix, "python3 -m pip install nvidia-nccl-cu12==2.21.5");
}

TEST(JudgeMachine, WantsALoginWithoutAPassword) {
  using Login = PeerFacts::Login;
  MachineFacts facts = healthy();
  const auto peer = [](const std::string& error) {
    PeerFacts failing{"bob@node2", PeerFacts::Path::kOpen, "10.0.0.2", ""};
    failing.login = Login::kFails;
    failing.login_error = error;
    return failing;
  };
  for (const auto& [error, fix] :
       {std::pair("bob@node2: Permission denied (publickey).", "'ssh-copy-id bob@node2'"),
        std::pair("Host key verification failed.", "by hand, to accept the key of the host: ssh bob@node2 true"),
        std::pair("its host key has changed", "ssh-keygen -R NAME"),
        std::pair("ssh: connect to host node2 port 22: Connection refused", "ssh server there"),
        std::pair("no answer within 12s", "'ssh -v bob@node2 true'")}) {
    facts.peers = {peer(error)};
    EXPECT_EQ(only(facts).id, "ssh");
    EXPECT_THAT(only(facts).text, AllOf(HasSubstr("'bob@node2'"), HasSubstr(error)));
    EXPECT_THAT(only(facts).fix, HasSubstr(fix));
  }
  facts.peers = {{"node2", PeerFacts::Path::kOpen, "10.0.0.2", "", Login::kWorks}};
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>());
  facts.peers = {{"alias", PeerFacts::Path::kUnresolved, "", "Name or service not known", Login::kWorks}};
  EXPECT_EQ(only(facts).severity, Severity::kNote) << "ssh knows it, and a run asks ssh only";
  facts.peers.front().login = Login::kFails;
  facts.peers.front().login_error = "bob@alias: Permission denied (publickey).";
  EXPECT_THAT(only(facts).text, HasSubstr("Permission denied")) << "ssh has found it";
  facts.peers.front().login_error = "ssh: Could not resolve hostname alias: Name or service not known";
  EXPECT_EQ(only(facts).id, "peer");
  facts.peers.clear();
  facts.ssh_error = "cannot execute 'ssh': No such file or directory";
  EXPECT_THAT(only(facts).fix, HasSubstr("install ssh"));
}

TEST(JudgeMachine, KnowsSmallFullAndMissingSharedMemory) {
  MachineFacts facts = healthy();
  facts.shared_memory = {64 << 20U, 64 << 20U};
  EXPECT_EQ(only(facts).id, "shm");
  EXPECT_THAT(only(facts).text, HasSubstr("64 MiB"));
  EXPECT_THAT(only(facts).fix, HasSubstr("--shm-size"));
  facts.shared_memory = {16 * kGiB, 4096};
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("full"), HasSubstr("4 KiB of 16 GiB")));
  facts.shared_memory = {};
  EXPECT_EQ(only(facts).severity, Severity::kProblem);
}

TEST(JudgeMachine, WantsLockedMemoryForRdmaOnly) {
  MachineFacts facts = healthy();
  facts.locked_memory = 8 << 20U;
  EXPECT_EQ(only(facts).id, "memlock");
  facts.infiniband = false;
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>());
}

TEST(JudgeMachine, WantsRoomForFiles) {
  MachineFacts facts = healthy();
  facts.open_files = 1024;
  EXPECT_EQ(only(facts).id, "nofile");
}

TEST(JudgeMachine, KnowsBrokenNames) {
  MachineFacts facts = healthy();
  facts.loopback_error = "no answer";
  EXPECT_EQ(only(facts).id, "loopback");
  facts = healthy();
  facts.host_addresses.clear();
  EXPECT_EQ(only(facts).id, "hostname");
  facts.host_name_slow = true;
  EXPECT_THAT(only(facts).text, HasSubstr("does not answer for 'node1'"));
  facts = healthy();
  facts.host_addresses = {"127.0.1.1"};
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>()) << "one host needs no other address";
  facts.peers = {{"node2", PeerFacts::Path::kOpen, "10.0.0.2", ""}};
  EXPECT_THAT(only(facts).text, HasSubstr("127.0.1.1"));
}

TEST(JudgeMachine, ReportsHowAPeerIsCutOff) {
  MachineFacts facts = healthy();
  facts.peers = {{"node2", PeerFacts::Path::kSilent, "10.0.0.2", ""}};
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("'node2' (10.0.0.2)"), HasSubstr("firewall")));
  facts.peers = {{"node2", PeerFacts::Path::kUnreachable, "10.0.0.2", "No route to host"}};
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("'node2' (10.0.0.2)"), HasSubstr("No route to host")));
  facts.peers = {{"nod2", PeerFacts::Path::kUnresolved, "", "Name or service not known"}};
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("'nod2'"), HasSubstr("Name or service not known")));
}

TEST(JudgeMachine, KnowsADriverThatIsMissingBrokenOrMixed) {
  MachineFacts facts = healthy();
  facts.machine_gpus = facts.visible_gpus = {GpuAnswer::kNoLibrary, {}, ""};
  facts.driver = {};
  EXPECT_EQ(only(facts).id, "driver");
  facts.machine_gpus.answer = GpuAnswer::kDriverNotLoaded;
  EXPECT_THAT(only(facts).text, HasSubstr("not loaded"));
  facts.machine_gpus = {GpuAnswer::kFailed, {}, "the NVIDIA driver does not answer within 5s"};
  EXPECT_EQ(only(facts).text, "the NVIDIA driver does not answer within 5s");
  facts = healthy();
  facts.driver.kernel = "565.10";
  EXPECT_EQ(only(facts).id, "driver-version");
  facts = healthy();
  facts.driver.closed_nodes = {"/dev/nvidia0"};
  EXPECT_EQ(only(facts).id, "permission");
}

TEST(JudgeMachine, KnowsSickGpus) {
  MachineFacts facts = healthy();
  facts.machine_gpus.gpus[1].lost = true;
  EXPECT_EQ(only(facts).id, "gpu-lost");
  facts = healthy();
  facts.machine_gpus.gpus[1].mode = ComputeMode::kProhibited;
  EXPECT_EQ(only(facts).id, "gpu-mode");
  facts = healthy();
  facts.machine_gpus.gpus[0].processes = {{7, 100, "python3"}};
  EXPECT_EQ(only(facts).text, "GPU 0 is busy: process 7 (python3) uses 100 MiB of it");
  facts = healthy();
  facts.driver.waiting_for_reset = {1};
  EXPECT_EQ(only(facts).id, "gpu-memory");
}

TEST(JudgeMachine, KnowsGpusThatAreMissingOrHidden) {
  MachineFacts facts = healthy();
  facts.driver.listed = 8;
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("8 GPUs"), HasSubstr("only 2")));
  facts = healthy();
  facts.visible_gpus = {GpuAnswer::kCounted, {}, "CUDA_VISIBLE_DEVICES='9' leaves none"};
  EXPECT_THAT(only(facts).text, HasSubstr("CUDA_VISIBLE_DEVICES='9' leaves none"));
}

TEST(JudgeMachine, ReportsAPairWithoutPeerToPeerAsAFaultOnlyWhereOthersHaveIt) {
  MachineFacts facts = healthy();
  facts.driver.blocked = {{0, 1, "the GPUs do not support it"}};
  EXPECT_EQ(only(facts).severity, Severity::kNote);
  EXPECT_TRUE(is_healthy(judge_machine(facts)));
  facts.driver.pairs = 6;
  EXPECT_EQ(only(facts).severity, Severity::kWarning);
  EXPECT_FALSE(is_healthy(judge_machine(facts)));
}

TEST(JudgeMachine, ComplainsOfAQuotaOnlyWhenItStarvesWorkers) {
  MachineFacts facts = healthy();
  facts.cpu_quota = 8.0;
  EXPECT_EQ(only(facts).severity, Severity::kNote);
  facts.cpu_quota = 1.5;
  EXPECT_THAT(only(facts).text, AllOf(HasSubstr("1.5 of 64 CPUs"), HasSubstr("less than one per worker")));
  facts.cpu_quota = 64.0;
  EXPECT_EQ(judge_machine(facts), std::vector<Finding>());
}

TEST(JudgeMachine, NeedsASynchronizedClockAmongSeveralHosts) {
  MachineFacts facts = healthy();
  facts.clock_synchronized = false;
  EXPECT_EQ(only(facts).severity, Severity::kNote);
  facts.peers = {{"node2", PeerFacts::Path::kOpen, "10.0.0.2", ""}};
  EXPECT_EQ(only(facts).severity, Severity::kWarning);
  facts.clock_seconds = 0;
  EXPECT_EQ(only(facts).severity, Severity::kProblem);
}

TEST(JudgeMachine, WantsRoomForLogs) {
  MachineFacts facts = healthy();
  facts.state_room.free_bytes = 1 << 20U;
  EXPECT_EQ(only(facts).id, "state");
  facts.state_error = "Read-only file system";
  EXPECT_THAT(only(facts).text, HasSubstr("Read-only file system"));
}

}  // namespace
}  // namespace lrun::launcher
