#include "inspect/unusual_ranks.h"

#include <gtest/gtest.h>

#include <string>

namespace lrun::launcher {
namespace {

/// Ranks that have computed for ten minutes, and print something every second.
std::vector<RunStatus> run_of(int ranks) {
  std::vector<RunStatus> runs(1);
  for (int rank = 0; rank < ranks; ++rank) {
    runs[0].workers.push_back(
        {.rank = rank, .quiet_ms = 500 + rank, .use = {.lived_ms = 600'000, .cpu_percent = 100 + rank % 5}});
  }
  return runs;
}

/// 'RANK WORDS;' for each marked rank.
std::string marks(std::vector<RunStatus> runs) {
  mark_unusual(runs);
  std::string all;
  for (const RunStatus& run : runs) {
    for (const WorkerStatus& worker : run.workers) {
      if (!worker.unusual.empty()) all += std::to_string(worker.rank) + " " + worker.unusual + ";";
    }
  }
  return all;
}

TEST(UnusualRanks, AreNoneOfEqualOnes) {
  for (const int ranks : {0, 1, 2, 3, 64}) EXPECT_EQ(marks(run_of(ranks)), "") << ranks;
}

TEST(UnusualRanks, ARankThatPrintsNothingWhileTheOthersDoIsQuiet) {
  auto runs = run_of(4);
  runs[0].workers[2].quiet_ms = 31'000;
  EXPECT_EQ(marks(runs), "2 quiet;");
  runs[0].workers[2].quiet_ms = 29'000;
  EXPECT_EQ(marks(runs), "") << "half a minute is nothing unusual";
  for (WorkerStatus& worker : runs[0].workers) worker.quiet_ms = 40'000;
  runs[0].workers[2].quiet_ms = 120'000;
  EXPECT_EQ(marks(runs), "") << "the others print seldom, too";
}

TEST(UnusualRanks, OnlyRankZeroMayPrint) {
  auto runs = run_of(8);
  for (int rank = 1; rank < 8; ++rank) runs[0].workers[static_cast<std::size_t>(rank)].quiet_ms = -1;
  EXPECT_EQ(marks(runs), "");
  for (int rank = 1; rank < 8; ++rank) runs[0].workers[static_cast<std::size_t>(rank)].quiet_ms = 600'000;
  EXPECT_EQ(marks(runs), "") << "the others printed something at their start";
}

TEST(UnusualRanks, OneThatComputesLessOrMoreThanTheOthersIsMarked) {
  auto runs = run_of(8);
  runs[0].workers[3].use.cpu_percent = 3;
  runs[0].workers[5].use.cpu_percent = 420;
  EXPECT_EQ(marks(runs), "3 low CPU;5 high CPU;");
  runs[0].workers[3].quiet_ms = 300'000;
  EXPECT_EQ(marks(runs), "3 quiet, low CPU;5 high CPU;");
}

TEST(UnusualRanks, ADifferenceCountsByTheMedian) {
  auto runs = run_of(4);
  for (WorkerStatus& worker : runs[0].workers) worker.use.cpu_percent = 800;
  runs[0].workers[0].use.cpu_percent = 500;
  EXPECT_EQ(marks(runs), "") << "less than half of 800 away";
  for (WorkerStatus& worker : runs[0].workers) worker.use.cpu_percent = 2;
  runs[0].workers[0].use.cpu_percent = 30;
  EXPECT_EQ(marks(runs), "") << "less than 40 points away";
}

TEST(UnusualRanks, AreAQuarterAtMost) {
  auto runs = run_of(8);
  runs[0].workers[0].use.cpu_percent = 0;
  runs[0].workers[1].use.cpu_percent = 0;
  EXPECT_EQ(marks(runs), "0 low CPU;1 low CPU;");
  runs[0].workers[2].use.cpu_percent = 0;
  EXPECT_EQ(marks(runs), "") << "the ranks do not agree";
}

TEST(UnusualRanks, AreNoneAtTheStartAndNoneOfTwo) {
  auto runs = run_of(4);
  runs[0].workers[0].use.cpu_percent = 0;
  runs[0].workers[3].use.lived_ms = 29'999;
  EXPECT_EQ(marks(runs), "");
  runs[0].workers[3].use.lived_ms = -1;
  EXPECT_EQ(marks(runs), "") << "unknown";
  runs = run_of(2);
  runs[0].workers[0].use.cpu_percent = 0;
  EXPECT_EQ(marks(runs), "");
}

TEST(UnusualRanks, EndedAndStoppedOnesAreNotCompared) {
  auto runs = run_of(5);
  runs[0].workers[0].use.cpu_percent = 0;
  runs[0].workers[0].stopped = true;
  runs[0].workers[1].running = false;
  runs[0].workers[1].use = {};
  runs[0].workers[2].use.cpu_percent = 0;
  EXPECT_EQ(marks(runs), "2 low CPU;");
}

TEST(UnusualRanks, RanksOfAJobMayHaveALauncherEach) {
  std::vector<RunStatus> runs(4, run_of(1).front());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].run_id = "job";
    runs[i].workers[0].rank = static_cast<int>(i);
  }
  runs[2].workers[0].use.cpu_percent = 0;
  EXPECT_EQ(marks(runs), "2 low CPU;");
  runs[0].run_id = runs[1].run_id = "other";
  EXPECT_EQ(marks(runs), "") << "two runs of two ranks";
}

}  // namespace
}  // namespace lrun::launcher
