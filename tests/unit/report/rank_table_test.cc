#include "report/rank_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMiB = std::int64_t{1} << 20U;

std::vector<WorkerStatus> ranks(int count) {
  std::vector<WorkerStatus> workers;
  for (int rank = 0; rank < count; ++rank) {
    workers.push_back({.rank = rank,
                       .last_line = "step 7",
                       .quiet_ms = 1000 + rank,
                       .use = {.lived_ms = 60'000, .cpu_percent = 95 + rank % 4, .resident_bytes = 1300 * kMiB}});
  }
  return workers;
}

TEST(RankTable, RanksThatAreAlikeShareALine) {
  std::vector<WorkerStatus> workers = ranks(4);
  workers[1].use.cpu_percent = 12;
  workers[3].last_line = "step 8";
  EXPECT_THAT(
      rank_table(workers, RankFold::kAlike),
      ElementsAre("  RANK  STATE    QUIET  CPU     MEMORY  LAST LINE", "  0,2   running  1s     95-97%  1.2G    step 7",
                  "  1     running  1s     12%     1.2G    step 7", "  3     running  1s     98%     1.2G    step 8"));
}

TEST(RankTable, EachRankMayHaveALine) {
  EXPECT_THAT(rank_table(ranks(2), RankFold::kNone), ElementsAre("  RANK  STATE    QUIET  CPU  MEMORY  LAST LINE",
                                                                 "  0     running  1s     95%  1.2G    step 7",
                                                                 "  1     running  1s     96%  1.2G    step 7"));
}

TEST(RankTable, ManyRanksFoldByTheirStateAndTheUnusualComeFirst) {
  std::vector<WorkerStatus> workers = ranks(64);
  for (WorkerStatus& worker : workers) worker.last_line = "step " + std::to_string(worker.rank);
  workers[9].unusual = "low CPU";
  workers[9].use.cpu_percent = 2;
  workers[63] = {.rank = 63, .running = false, .ending = "exited with code 0", .last_line = "bye"};
  const std::vector<std::string> table = rank_table(workers, RankFold::kState);
  EXPECT_THAT(table, ElementsAre("  RANK       STATE               QUIET  CPU     MEMORY  LAST LINE",
                                 "  9          running, low CPU    1s     2%      1.2G    step 9",
                                 "  63         exited with code 0  -      -       -       bye",
                                 "  0-8,10-62  running             1s     95-98%  1.2G    step 0"));
  for (const std::string& line : table) EXPECT_LE(line.size(), 80U);
}

TEST(RankTable, ShowsWhatRanksUseOfGpus) {
  std::vector<WorkerStatus> workers(3);
  for (int rank = 0; rank < 3; ++rank) workers[static_cast<std::size_t>(rank)].rank = rank;
  workers[0].gpus = {{0, 3412, 87}};
  workers[1].gpus = {{1, 3400, 91}};
  workers[2].gpus = {{2, 300, -1}, {3, -1, 4}};
  EXPECT_THAT(rank_table(workers, RankFold::kAlike),
              ElementsAre("  RANK  STATE    GPU  GPU MEM  GPU%", "  0-1   running  0-1  3.3G     87-91%",
                          "  2     running  2-3  300M     4%"));
}

TEST(RankTable, HasNoColumnForWhatIsNotKnown) {
  EXPECT_THAT(rank_table({{.rank = 0}}, RankFold::kAlike), ElementsAre("  RANK  STATE", "  0     running"));
  EXPECT_THAT(rank_table({}, RankFold::kAlike), IsEmpty());
}

TEST(RankTable, NumbersAreShort) {
  const auto cells = [](std::int64_t quiet_ms, std::int64_t mib, std::int64_t steps_in_ks) {
    return rank_table(
               {{.rank = 0, .quiet_ms = quiet_ms, .use = {.resident_bytes = mib * kMiB, .steps_in_ks = steps_in_ks}}},
               RankFold::kNone)
        .back();
  };
  EXPECT_EQ(cells(999, 999, 4), "  0     running  0s     999M    0.00");
  EXPECT_EQ(cells(59'999, 1024, 1250), "  0     running  59s    1.0G    1.25");
  EXPECT_EQ(cells(3'599'000, 10'239, 12'550), "  0     running  59m    9.9G    12.5");
  EXPECT_EQ(cells(86'399'000, 200'000, 3'000'000), "  0     running  23h    195G    3000");
  EXPECT_EQ(cells(200'000'000, 0, -1), "  0     running  2d     0M");
}

TEST(RankTable, AStoppedRankIsNotARunningOne) {
  std::vector<WorkerStatus> workers = ranks(2);
  workers[1].stopped = true;
  const std::vector<std::string> table = rank_table(workers, RankFold::kState);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_TRUE(table[1].starts_with("  1     stopped  ")) << table[1];
}

TEST(RankTable, AWorkersWordsCannotMoveTheCursor) {
  EXPECT_EQ(rank_table({{.rank = 0, .last_line = "a\x1b[2Jb\x07"}}, RankFold::kNone).back(),
            "  0     running  ab\\x07");
}

TEST(RankTable, AListOfManyRanksIsCut) {
  std::vector<WorkerStatus> workers = ranks(22);
  for (WorkerStatus& worker : workers) worker.stopped = worker.rank % 2 == 1;
  EXPECT_THAT(rank_table(workers, RankFold::kState),
              ElementsAre("  RANK                   STATE    QUIET  CPU     MEMORY  LAST LINE",
                          "  1,3,5,7,9,11,13,15,1…  stopped  1s     96-98%  1.2G    step 7",
                          "  0,2,4,6,8,10,12,14,1…  running  1s     95-97%  1.2G    step 7"));
}

}  // namespace
}  // namespace lrun::launcher
