#include "report/event_log.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <fstream>

#include "base/clock.h"
#include "base/replaced_file.h"
#include "report/result_json.h"
#include "support/full_disk.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

class EventLogTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  const Folder held_ = Folder::open(folder_);
};

TEST_F(EventLogTest, WritesOneJsonObjectALine) {
  EventLog events(held_);
  FailureRecord record;
  record.rank = 3;
  record.evidence = {"a \"quoted\"\nline"};
  events.worker_ended(record);
  events.noted("suspended");
  events.run_ended(judge({RunEnd::Kind::kSucceeded}, {record}));
  record.pid = 4242;
  record.cause = Cause::kFatalSignal;
  events.stopping({RunEnd::Kind::kWorkerFailed}, &record, 7);

  std::ifstream file(folder_ / "events.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["event"], "worker_ended");
  EXPECT_EQ(lines[0]["rank"], 3);
  EXPECT_EQ(lines[0]["schema"], 1);
  EXPECT_EQ(lines[1]["event"], "suspended");
  EXPECT_NEAR(lines[1]["steady"].get<double>(), static_cast<double>(nanoseconds(steady_now())) / 1e9, 60);
  EXPECT_GE(lines[1]["steady"].get<double>(), lines[0]["steady"].get<double>());
  EXPECT_EQ(lines[2]["reason"], "succeeded");
  EXPECT_FALSE(lines[2].contains("rank")) << "nobody is to blame";
  EXPECT_EQ(lines[3]["pid"], 4242);
  EXPECT_EQ(lines[3]["cause"], "fatal_signal");
  EXPECT_EQ(lines[3]["others"], 7);
}

TEST_F(EventLogTest, TellsWhatAllMeasuredRanksUsedInOneLine) {
  EventLog events(held_);
  events.used(2, {{.rank = 4, .use = {.cpu_percent = 98, .resident_bytes = 5 << 20}},
                  {.rank = 5},
                  {.rank = 6, .use = {.cpu_percent = 0, .resident_bytes = 2048}}});
  events.used(2, {{.rank = 5}});
  std::ifstream file(folder_ / "events.jsonl");
  std::string line;
  std::getline(file, line);
  EXPECT_NE(line.find(R"("event":"usage","attempt":2,"cpu_percent":[98,0],"memory_kib":[5120,2],"rank":[4,6]})"),
            std::string::npos)
      << line;
  EXPECT_FALSE(std::getline(file, line)) << "there is nothing to tell: " << line;
}

TEST_F(EventLogTest, TellsTheNewestCheckpointsThatAreKnown) {
  EventLog events(held_);
  events.checkpoints_found(2, 0, 0);
  events.checkpoints_found(2, 1'700'000'000'125'000'000, 0);
  events.checkpoints_found(3, 0, 1'700'000'000'500'000'000);
  std::ifstream file(folder_ / "events.jsonl");
  std::string line;
  std::getline(file, line);
  EXPECT_NE(line.find(R"("event":"checkpoints_found","attempt":2,"written":1700000000.125})"), std::string::npos)
      << line;
  std::getline(file, line);
  EXPECT_NE(line.find(R"("attempt":3,"written_in_memory":1700000000.5})"), std::string::npos) << line;
}

TEST_F(EventLogTest, BeginsALineOfItsOwnBehindOneThatAFullDiskCut) {
  EventLog events(held_);
  events.noted("suspended");
  {
    const test::FullDisk full(std::filesystem::file_size(folder_ / "events.jsonl") + 10);
    events.noted("resumed");
    events.noted("killing");
  }
  events.noted("suspended");

  std::ifstream file(folder_ / "events.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].size(), 10U) << "what there was room for: " << lines[1];
  EXPECT_EQ(nlohmann::json::parse(lines[2])["event"], "suspended");
}

TEST_F(EventLogTest, DoesNothingWithoutAFile) {
  EventLog events;
  events.noted("suspended");
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(EventLogTest, WaitsForNoPipeInAResultsPlace) {
  ASSERT_EQ(::mkfifo((folder_ / "result.json").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((folder_ / "result.json.new").c_str(), 0600), 0);
  EXPECT_EQ(replace_file(held_, "result.json", "result", 0600), 0);
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_ / "result.json"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(EventLogTest, WritesAResultWholeOrNotAtAll) {
  const std::string result = result_json("run", judge({RunEnd::Kind::kSucceeded}, {}), {}, "", "");
  EXPECT_EQ(replace_file(held_, "result.json", "old", 0600), 0);
  EXPECT_EQ(replace_file(held_, "result.json", result, 0600), 0);
  {
    const test::FullDisk full(10);
    EXPECT_EQ(replace_file(held_, "result.json", "longer than there is room for", 0600), EFBIG);
  }
  std::ifstream file(folder_ / "result.json");
  EXPECT_EQ(nlohmann::json::parse(file)["exit_code"], 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "nothing is left beside it";
}

}  // namespace
}  // namespace lrun::launcher
