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

TEST(RankPlaces, SayWhatToLookAtWhereRanksWaitInVain) {
  EXPECT_EQ(hint_about_waiting({}), "");
  EXPECT_EQ(hint_about_waiting({running(0, "f")}), "");
  EXPECT_EQ(hint_about_waiting({waiting(1, 0)}),
            "each rank has to call 'all_reduce' as often: compare the groups, and the sizes of their tensors");
  EXPECT_EQ(hint_about_waiting({waiting(1, 0), waiting(1, 1, "broadcast at train.py:7")}),
            "all ranks have to call the same operations in the same order");
  EXPECT_EQ(hint_about_waiting({waiting(2, 0, "recv at train.py:7")}), "each rank waits for a message that none sends");
  EXPECT_EQ(hint_about_waiting({waiting(2, 0, "init_process_group at train.py:7")}),
            "the program waits for more ranks: leave 'world_size', 'init_method' and MASTER_ADDR to lrun");
  EXPECT_EQ(hint_about_waiting({waiting(2, 0), running(3, "f"), running(2, "g")}),
            "every rank has to call 'all_reduce': see what keeps ranks 2-3 from it");
  RankPlace several = running(2, "f");
  several.count = 2;
  EXPECT_EQ(hint_about_waiting({waiting(2, 0), several}),
            "every rank has to call 'all_reduce': see what keeps the others from it");
}

}  // namespace
}  // namespace lrun
