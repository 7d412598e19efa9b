#include <gtest/gtest.h>

#include <string>

#include "report/plot_axis.h"
#include "report/timeline_html.h"

namespace lrun::launcher {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000;
constexpr std::int64_t kGiB = 1 << 20;  // in KiB

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Of 100 seconds with a sample every 10; each rank has its number in GiB of memory and as much CPU as all.
Timeline run_of(int ranks) {
  Timeline timeline{.run_id = "r", .started_ms = kStart, .ended_ms = kStart + 100'000};
  for (int rank = 0; rank < ranks; ++rank) {
    WorkerSpan worker;
    worker.rank = rank;
    worker.spawned_ms = kStart;
    for (int at = 1; at <= 10; ++at) worker.usage.push_back({kStart + at * 10'000, rank * kGiB, 100});
    timeline.workers.push_back(worker);
  }
  return timeline;
}

TEST(UsageCharts, AreThereOnlyWithSamples) {
  Timeline timeline = run_of(1);
  EXPECT_EQ(occurrences(usage_html(timeline), "<svg"), 2U);
  timeline.workers.front().usage.clear();
  EXPECT_EQ(usage_html(timeline), "");
}

TEST(UsageCharts, HaveALineForEachOfAFewRanks) {
  const std::string charts = usage_html(run_of(8));
  EXPECT_EQ(occurrences(charts, "<polyline"), 16U);
  EXPECT_EQ(occurrences(charts, "<title>rank 7</title>"), 2U);
  EXPECT_EQ(occurrences(charts, "--rank7"), 3U) << "and in the key";
  EXPECT_EQ(occurrences(charts, "<polygon"), 0U);
}

TEST(UsageCharts, OfManyRanksAreABandAndTheMedianAndTheRankToBlame) {
  Timeline timeline = run_of(200);
  timeline.culprit = 150;
  const std::string charts = usage_html(timeline);
  EXPECT_EQ(occurrences(charts, "<polygon"), 2U);
  EXPECT_EQ(occurrences(charts, "<polyline"), 4U);
  EXPECT_EQ(occurrences(charts, "var(--failed)"), 3U);
  EXPECT_NE(charts.find("rank 150, to blame"), std::string::npos);
  EXPECT_LT(charts.size(), 40'000U);
}

TEST(UsageCharts, BeginAtTheStartOfAWorkerWithNoMemory) {
  Timeline timeline = run_of(2);
  timeline.workers.erase(timeline.workers.begin());
  const std::string charts = usage_html(timeline);
  EXPECT_NE(charts.find(R"(points="66.0,182.0 105.8,10.0 145.6,10.0 )"), std::string::npos) << charts;
  EXPECT_NE(charts.find(R"(points="66.0,10.0 105.8,10.0 145.6,10.0 )"), std::string::npos)
      << "CPU: the first sample is of all the time before it\n"
      << charts;
}

TEST(UsageCharts, BreakTheBandBetweenTwoAttempts) {
  Timeline timeline = run_of(9);
  for (WorkerSpan worker : run_of(9).workers) {
    worker.attempt = 1;
    worker.spawned_ms += 150'000;
    for (UsageSample& sample : worker.usage) sample.ms += 150'000;
    timeline.workers.push_back(worker);
  }
  EXPECT_EQ(occurrences(usage_html(timeline), "<polygon"), 4U);
}

TEST(UsageCharts, HaveUnitsThatFit) {
  EXPECT_NE(usage_html(run_of(4)).find(">3 GiB</text>"), std::string::npos);
  Timeline timeline = run_of(1);
  EXPECT_NE(usage_html(timeline).find(">1.0 KiB</text>"), std::string::npos);
  timeline.workers.front().usage.front().memory_kib = 700 * 1024;
  EXPECT_NE(usage_html(timeline).find(">600 MiB</text>"), std::string::npos) << usage_html(timeline);
  timeline.workers.front().usage.front().memory_kib = kGiB * 3 / 2;
  EXPECT_NE(usage_html(timeline).find(">1.5 GiB</text>"), std::string::npos) << usage_html(timeline);
  timeline.workers.front().usage.front() = {kStart + 1000, std::int64_t{1} << 60U, 1 << 30};
  EXPECT_EQ(usage_html(timeline).find("inf"), std::string::npos);
}

TEST(UsageCharts, OfAMillionSamplesAreNoLongerThanTheyAreWide) {
  Timeline timeline = run_of(1);
  for (int at = 0; at < 1'000'000; ++at) timeline.workers.front().usage.push_back({kStart + at / 10, at % 7, at % 100});
  EXPECT_LT(usage_html(timeline).size(), 20'000U);
}

TEST(PlotAxis, CountsInSecondsMinutesAndHours) {
  const auto second = [](double span_ms) { return time_name(time_step(span_ms, 6), time_step(span_ms, 6)); };
  EXPECT_EQ(second(30), "0.01 s");
  EXPECT_EQ(second(4'000), "1 s");
  EXPECT_EQ(second(100'000), "20 s");
  EXPECT_EQ(second(170'000), "30 s");
  EXPECT_EQ(second(900'000), "5:00 min");
  EXPECT_EQ(second(8 * 3'600'000.0), "2:00 h");
  EXPECT_EQ(second(7 * 86'400'000.0), "50:00 h");
}

}  // namespace
}  // namespace lrun::launcher
