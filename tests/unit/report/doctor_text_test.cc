#include "report/doctor_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lrun::launcher {
namespace {

const std::vector<Finding> kFindings{
    {"shm", Finding::Severity::kWarning, "/dev/shm holds only 64 MiB", "docker run --shm-size=8g"},
    {"p2p", Finding::Severity::kNote, "no peer-to-peer", "look at the BIOS"}};

MachineFacts some_facts() {
  MachineFacts facts;
  facts.shared_memory = {64 << 20U, 32 << 20U};
  facts.open_files = 1024;
  facts.host_name = "node1";
  facts.host_addresses = {"10.0.0.1", "::1"};
  facts.machine_gpus = {GpuAnswer::kCounted, {{0, "GPU-a", "0"}}, ""};
  facts.machine_gpus.gpus[0].name = "NVIDIA H100";
  facts.driver.library = "570.00";
  facts.driver.cuda = 12080;
  facts.peers = {{"node2", PeerFacts::Path::kSilent, "10.0.0.2", ""}};
  facts.state_folder = "/state";
  facts.python = {.answer = PythonFacts::Answer::kGiven,
                  .path = "/usr/bin/python3",
                  .version = "3.11.2",
                  .torch = TorchFacts{"2.6.0+cu124", "12.4", "2.21.5", ""}};
  return facts;
}

TEST(DoctorText, IsSilentAboutNotes) {
  EXPECT_EQ(doctor_text(some_facts(), kFindings, false),
            "warning  /dev/shm holds only 64 MiB\n"
            "    fix: docker run --shm-size=8g\n");
}

TEST(DoctorText, IsOneLineAboutAHealthyMachine) {
  MachineFacts facts = some_facts();
  facts.visible_gpus = facts.machine_gpus;
  EXPECT_EQ(doctor_text(facts, {kFindings[1]}, false),
            "lrun doctor: no problems: 1 GPU, Python 3.11 with torch 2.6 (CUDA 12.4), NCCL 2.21, 1 host reached\n");
  facts.machine_gpus.gpus.push_back({1, "GPU-b", "1"});
  facts.python.torch.reset();
  facts.peers.clear();
  EXPECT_EQ(doctor_text(facts, {}, false), "lrun doctor: no problems: 1 of 2 GPUs, Python 3.11 without torch\n");
  facts.machine_gpus.gpus.clear();
  facts.python = {};
  facts.cpus = 2;
  EXPECT_EQ(doctor_text(facts, {}, false), "lrun doctor: no problems: no GPU, 2 CPU cores, no Python\n");
  facts.python = {
      .answer = PythonFacts::Answer::kGiven, .version = "3.13.0rc1", .torch = TorchFacts{.version = "2.10a0+git1"}};
  EXPECT_EQ(doctor_text(facts, {}, false),
            "lrun doctor: no problems: no GPU, 2 CPU cores, Python 3.13 with torch 2.10\n");
}

TEST(DoctorText, NeverMovesTheCursor) {
  MachineFacts facts = some_facts();
  facts.python.version = "3\x1b[2J\n";
  for (const bool verbose : {false, true}) {
    EXPECT_EQ(doctor_text(facts, {}, verbose).find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(doctor_text(facts, {{"ssh", Finding::Severity::kProblem, "\x1b[2Jgone", "\x1b[2J"}}, false).find('\x1b'),
            std::string::npos);
}

TEST(DoctorText, SaysEverythingWhenAsked) {
  EXPECT_EQ(
      doctor_text(some_facts(), {kFindings[1]}, true),
      "note     no peer-to-peer\n"
      "    fix: look at the BIOS\n"
      "info     GPUs: 1, 0 visible to programs, NVIDIA H100, driver 570.00, CUDA 12.8\n"
      "info     Python: 3.11.2, /usr/bin/python3 (PATH)\n"
      "info     torch: 2.6.0+cu124, built for CUDA 12.4, NCCL 2.21.5\n"
      "info     /dev/shm: 0.1 GiB, 0.0 GiB free\n"
      "info     locked memory: unlimited\n"
      "info     open files: 1024\n"
      "info     CPUs: 1\n"
      "info     host: node1, 10.0.0.1, ::1\n"
      "info     host node2: silent\n"
      "info     clock: synchronized\n"
      "info     run folders: /state, 0.0 GiB free\n"
      "lrun doctor: no problems: 0 of 1 GPU, Python 3.11 with torch 2.6 (CUDA 12.4), NCCL 2.21, 1 host reached\n");
  MachineFacts without = some_facts();
  without.python = {};
  without.peers = {{"node2", PeerFacts::Path::kOpen, "10.0.0.2", "", PeerFacts::Login::kFails}};
  const std::string text = doctor_text(without, {}, true);
  EXPECT_NE(text.find("info     Python: none: no program 'python3'\n"), std::string::npos) << text;
  EXPECT_NE(text.find("info     host node2: open, ssh fails\n"), std::string::npos) << text;
}

TEST(DoctorJson, HoldsFindingsAndFacts) {
  const nlohmann::json json = nlohmann::json::parse(doctor_json(some_facts(), kFindings));
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("healthy"), false);
  EXPECT_EQ(json.at("findings").at(0).at("id"), "shm");
  EXPECT_EQ(json.at("findings").at(1).at("severity"), "note");
  EXPECT_EQ(json.at("facts").at("hosts").at(0).at("path"), "silent");
  EXPECT_EQ(json.at("facts").at("hosts").at(0).at("ssh"), "not tried");
  EXPECT_EQ(json.at("facts").at("python").at("version"), "3.11.2");
  EXPECT_EQ(json.at("facts").at("torch").at("cuda"), "12.4");
  EXPECT_EQ(json.at("facts").at("locked_memory_bytes"), nullptr);
  EXPECT_EQ(nlohmann::json::parse(doctor_json(some_facts(), {})).at("healthy"), true);
}

}  // namespace
}  // namespace lrun::launcher
