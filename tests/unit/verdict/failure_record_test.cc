#include "verdict/failure_record.h"

#include <gtest/gtest.h>

#include <csignal>
#include <numeric>

namespace lrun {
namespace {

FailureRecord example() {
  FailureRecord record;
  record.node = "gpu-node-1";
  record.node_rank = 1;
  record.rank = 5;
  record.local_rank = 1;
  record.pid = 4242;
  record.attempt = 2;
  record.device = "GPU 1";
  record.steady_ns = 123'456'789'012;
  record.wall_ns = 1'795'000'000'000'000'000;
  record.lifetime_ms = 872'000;
  record.peak_memory_kib = 12'345'678;
  record.ending = FailureRecord::Ending::kSignaled;
  record.value = SIGSEGV;
  record.core_dumped = true;
  record.evidence = {"step 3", "Segmentation \"fault\"\t\x01"};
  record.cause = Cause::kFatalSignal;
  record.error = "Fatal Python error: Segmentation fault";
  record.location = "a.py:3 in f";
  record.detail = "memory limit 64 MiB";
  record.error_file = "/logs/attempt_0/1/error.json";
  record.error_time = 1'795'000'000;
  return record;
}

TEST(FailureRecordJson, IsReadBackAsTheSameRecord) {
  EXPECT_EQ(failure_record_from_json(to_json(example())), example());
}

TEST(FailureRecordJson, OfAnOlderLrunHasNoPeakMemory) {
  FailureRecord record = example();
  record.peak_memory_kib = -1;
  EXPECT_EQ(to_json(record).find("peak"), std::string::npos);
  EXPECT_EQ(failure_record_from_json(to_json(record)), record);
}

TEST(FailureRecordJson, SurvivesTextThatIsNotUtf8) {
  FailureRecord record = example();
  record.evidence = {"\xff\xfe broken"};
  const auto read = failure_record_from_json(to_json(record));
  ASSERT_TRUE(read);
  EXPECT_NE(read->evidence.front().find("broken"), std::string::npos);
}

TEST(FailureRecordJson, RefusesWhatItCannotTrust) {
  EXPECT_EQ(failure_record_from_json(""), std::nullopt);
  EXPECT_EQ(failure_record_from_json("{}"), std::nullopt);
  EXPECT_EQ(failure_record_from_json(std::string(70'000, '[')), std::nullopt);
  std::string text = to_json(example());
  const auto at = text.find("\"rank\":5");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 8, "\"rank\":-1");
  EXPECT_EQ(failure_record_from_json(text), std::nullopt) << text;
  text.replace(at, 9, "\"rank\":\"a\"");
  EXPECT_EQ(failure_record_from_json(text), std::nullopt) << text;
}

TEST(Evidence, KeepsTheLastLinesThatFit) {
  const std::vector<std::string> lines(1000, std::string(99, 'x'));
  const auto kept = bounded_evidence(lines);
  EXPECT_EQ(kept.size(), FailureRecord::kMostEvidenceBytes / 100);
}

TEST(Evidence, KeepsTheEndOfALineLongerThanAll) {
  const auto kept = bounded_evidence({std::string(100'000, 'a') + "the end"});
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_LT(kept.front().size(), FailureRecord::kMostEvidenceBytes);
  EXPECT_TRUE(kept.front().ends_with("the end"));
}

}  // namespace
}  // namespace lrun
