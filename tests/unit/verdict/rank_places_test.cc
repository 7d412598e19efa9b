#include "verdict/rank_places.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

RankPlace waiting(int count, int first_rank, const std::string& where = "all_reduce at train.py:5") {
  return {"waits in", "wait in", where, true, count, first_rank};
}

RankPlace running(int first_rank, const std::string& where) { return {"runs", "run", where, false, 1, first_rank}; }

TEST(RankPlaces, OfTwoNodesAreCountedTogetherWhoeverComesFirst) {
  const std::vector<RankPlace> one = put_together({}, {waiting(2, 4), running(6, "load (data.py:8)")});
  const std::vector<RankPlace> other = put_together({}, {waiting(3, 1)});
  EXPECT_EQ(put_together(one, other), put_together(other, one));
  EXPECT_EQ(in_words(put_together(one, other)),
            "5 ranks wait in all_reduce at train.py:5; rank 6 runs load (data.py:8)");
}

TEST(RankPlaces, OfManyNodesStayFewAndKeepThoseThatDoNotWait) {
  std::vector<RankPlace> all;
  std::vector<RankPlace> backwards;
  for (int rank = 0; rank < 40; ++rank) {
    const std::vector<RankPlace> one{rank == 17 ? running(rank, "load (data.py:8)")
                                                : waiting(1, rank, "all_reduce at train.py:" + std::to_string(rank))};
    all = put_together(all, one);
    backwards = put_together(one, backwards);
  }
  EXPECT_EQ(all.size(), 8U);
  EXPECT_NE(in_words(all).find("rank 17 runs load (data.py:8)"), std::string::npos) << in_words(all);
  EXPECT_NE(in_words(all).find("; 2 more ranks elsewhere"), std::string::npos) << in_words(all);
}

TEST(RankPlaces, SayWhereMostWaitForOthers) {
  EXPECT_EQ(waiting_in_words({waiting(1, 0)}), "rank 0 waits for it in all_reduce at train.py:5");
  EXPECT_EQ(waiting_in_words({waiting(1, 0, "barrier"), waiting(7, 1)}),
            "7 ranks wait for it in all_reduce at train.py:5");
  EXPECT_EQ(waiting_in_words({running(3, "f"), waiting(1, 0)}), "") << "it may wait for rank 3";
  EXPECT_EQ(waiting_in_words({}), "");
  EXPECT_EQ(in_words({}), "");
}

}  // namespace
}  // namespace lrun
