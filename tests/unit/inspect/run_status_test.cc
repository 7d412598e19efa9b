#include "inspect/run_status.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lrun::launcher {
namespace {

RunStatus one_rank() {
  RunStatus status{.run_id = "r1", .pid = 100, .strategy = "ddp", .world_size = 1, .phase = "running"};
  status.workers.push_back({.rank = 0, .pid = 101, .last_line = "loss 0.25"});
  return status;
}

TEST(RunStatus, ALaunchersAnswerIsReadAsItWasWritten) {
  RunStatus status = one_rank();
  EXPECT_EQ(run_status_from_json(to_json(status)), status);
  status.workers[0].quiet_ms = 1200;
  status.workers[0].steps = {.count = 40, .took_ms = 3900, .last_ms_ago = 20};
  status.workers[0].use = {.lived_ms = 1000, .cpu_percent = 98, .resident_bytes = 4096, .steps_in_ks = 2500};
  EXPECT_EQ(run_status_from_json(to_json(status)), status);
}

TEST(RunStatus, AnOlderLauncherSaysLess) {
  auto json = nlohmann::json::parse(to_json(one_rank()));
  for (const char* const name : {"quiet_ms", "steps", "stopped"}) json["workers"][0].erase(name);
  EXPECT_EQ(run_status_from_json(json.dump()), one_rank());
}

TEST(RunStatus, NumbersThatCannotBeAreRefused) {
  auto json = nlohmann::json::parse(to_json(one_rank()));
  json["workers"][0]["quiet_ms"] = 1e300;
  EXPECT_EQ(run_status_from_json(json.dump()), std::nullopt);
}

TEST(RunStatus, TellsProgramsWhatIsNotKnown) {
  RunStatus status = one_rank();
  auto worker = nlohmann::json::parse(to_json(status))["workers"][0];
  for (const char* const name : {"quiet_ms", "steps_per_second", "cpu_percent", "resident_bytes"}) {
    EXPECT_TRUE(worker[name].is_null()) << name;
  }
  status.workers[0].use = {.lived_ms = 1000, .cpu_percent = 98, .resident_bytes = 4096, .steps_in_ks = 2500};
  status.workers[0].unusual = "low CPU";
  worker = nlohmann::json::parse(to_json(status))["workers"][0];
  EXPECT_EQ(worker["steps_per_second"], 2.5);
  EXPECT_EQ(worker["cpu_percent"], 98);
  EXPECT_EQ(worker["resident_bytes"], 4096);
  EXPECT_EQ(worker["unusual"], "low CPU");
}

}  // namespace
}  // namespace lrun::launcher
