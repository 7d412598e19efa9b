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
  return facts;
}

TEST(DoctorText, IsSilentAboutNotes) {
  EXPECT_EQ(doctor_text(some_facts(), kFindings, false),
            "warning  /dev/shm holds only 64 MiB\n"
            "    fix: docker run --shm-size=8g\n");
  EXPECT_EQ(doctor_text(some_facts(), {kFindings[1]}, false), "");
}

TEST(DoctorText, SaysEverythingWhenAsked) {
  EXPECT_EQ(doctor_text(some_facts(), {kFindings[1]}, true),
            "note     no peer-to-peer\n"
            "    fix: look at the BIOS\n"
            "info     GPUs: 1, 0 visible to programs, NVIDIA H100, driver 570.00, CUDA 12.8\n"
            "info     /dev/shm: 0.1 GiB, 0.0 GiB free\n"
            "info     locked memory: unlimited\n"
            "info     open files: 1024\n"
            "info     CPUs: 1\n"
            "info     host: node1, 10.0.0.1, ::1\n"
            "info     host node2: silent\n"
            "info     clock: synchronized\n"
            "info     run folders: /state, 0.0 GiB free\n");
}

TEST(DoctorJson, HoldsFindingsAndFacts) {
  const nlohmann::json json = nlohmann::json::parse(doctor_json(some_facts(), kFindings));
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("healthy"), false);
  EXPECT_EQ(json.at("findings").at(0).at("id"), "shm");
  EXPECT_EQ(json.at("findings").at(1).at("severity"), "note");
  EXPECT_EQ(json.at("facts").at("hosts").at(0).at("path"), "silent");
  EXPECT_EQ(json.at("facts").at("locked_memory_bytes"), nullptr);
  EXPECT_EQ(nlohmann::json::parse(doctor_json(some_facts(), {})).at("healthy"), true);
}

}  // namespace
}  // namespace lrun::launcher
