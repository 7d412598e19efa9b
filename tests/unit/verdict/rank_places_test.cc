#include "verdict/rank_places.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

RankPlace waiting(int count, int first_rank, const std::string& where = "all_reduce at train.py:5") {
  return {"waits in", "wait in", where, true, count, first_rank};
}

RankPlace running(int first_rank, const std::string& where) { return {"runs", "run", where, false, 1, first_rank}; }

TEST(RankPlaces, OfTwoNodesAreCountedTogetherWhoeverComesFirst) {
  const std::vector<RankPlace> one = merge_places({}, {waiting(2, 4), running(6, "load (data.py:8)")});
  const std::vector<RankPlace> other = merge_places({}, {waiting(3, 1)});
  EXPECT_EQ(merge_places(one, other), merge_places(other, one));
  EXPECT_EQ(describe_places(merge_places(one, other)),
            "5 ranks wait in all_reduce at train.py:5; rank 6 runs load (data.py:8)");
}

TEST(RankPlaces, OfManyNodesStayFewAndKeepThoseThatDoNotWait) {
  std::vector<RankPlace> all;
  std::vector<RankPlace> backwards;
  for (int rank = 0; rank < 40; ++rank) {
    const std::vector<RankPlace> one{rank == 17 ? running(rank, "load (data.py:8)")
                                                : waiting(1, rank, "all_reduce at train.py:" + std::to_string(rank))};
    all = merge_places(all, one);
    backwards = merge_places(one, backwards);
  }
  EXPECT_EQ(all.size(), 8U);
  EXPECT_NE(describe_places(all).find("rank 17 runs load (data.py:8)"), std::string::npos) << describe_places(all);
  EXPECT_NE(describe_places(all).find("; 2 more ranks elsewhere"), std::string::npos) << describe_places(all);
}

TEST(RankPlaces, SayWhereMostWaitForOthers) {
  EXPECT_EQ(describe_waiting({waiting(1, 0)}), "rank 0 waits for it in all_reduce at train.py:5");
  EXPECT_EQ(describe_waiting({waiting(1, 0, "barrier"), waiting(7, 1)}),
            "7 ranks wait for it in all_reduce at train.py:5");
  EXPECT_EQ(describe_waiting({running(3, "f"), waiting(1, 0)}), "") << "it may wait for rank 3";
  EXPECT_EQ(describe_waiting({}), "");
  EXPECT_EQ(describe_places({}), "");
}

}  // namespace
}  // namespace lrun
