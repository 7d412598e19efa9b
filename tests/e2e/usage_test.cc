// Memory and CPU of each rank, in the events of a run and in its report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// The most memory that a sample in the events of a run has for a rank, in MiB; 0: none has.
std::int64_t sampled_mib(const LrunProcess& run, int rank) {
  std::int64_t most = 0;
  std::ifstream events(run.run_folder() / "events.jsonl");
  for (std::string line; std::getline(events, line);) {
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_discarded() || event.at("event") != "usage") continue;
    for (std::size_t i = 0; i < event.at("rank").size(); ++i) {
      if (event["rank"][i] == rank) most = std::max(most, event["memory_kib"][i].get<std::int64_t>() / 1024);
    }
  }
  return most;
}

TEST(Report, ShowsWhatMemoryAndCpuEachRankUsed) {
  LrunProcess run({"-n", "2", "python3", "-c",
                   "import os, time\nx = bytearray(200 << 20) if os.environ['RANK'] == '1' else 0\ntime.sleep(1000)"});
  ASSERT_TRUE(eventually([&] { return sampled_mib(run, 1) >= 200; })) << "sampled " << sampled_mib(run, 1) << " MiB";
  EXPECT_LT(sampled_mib(run, 0), 200);
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait().signal_number, SIGTERM);
  std::ifstream file(run.run_folder() / "result.json");
  const nlohmann::json workers = nlohmann::json::parse(file).at("workers");
  ASSERT_EQ(workers.size(), 2U);
  for (const nlohmann::json& worker : workers) {
    EXPECT_EQ(worker.at("peak_memory_kib") >= 200 * 1024, worker.at("rank") == 1) << worker;
  }
  const LrunProcess::Options beside{.environment = {{"LRUN_STATE", run.state().string()}}};
  LrunProcess report({"report"}, beside);
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), ContainsRegex(", took [^,]+, peak memory 2[0-9.]+ MiB .rank 1.\n"));
  LrunProcess page({"report", "--html", "-"}, beside);
  EXPECT_EQ(page.wait().code, 0) << page.err();
  EXPECT_THAT(page.out(), ContainsRegex("<td class=\"number\">2[0-9.]+ MiB</td>"));
  EXPECT_THAT(page.out(), AllOf(HasSubstr("Memory of each rank"), HasSubstr("CPU of each rank")));
  EXPECT_THAT(page.out(), AllOf(HasSubstr("<title>rank 0</title>"), HasSubstr("<title>rank 1</title>")));
}

}  // namespace
}  // namespace lrun::test
