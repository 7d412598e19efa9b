#include "base/nearest.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

TEST(NearestWord, FindsATypingMistake) {
  EXPECT_EQ(nearest_word("--nproc-per-nood", {"--nnodes", "--nproc-per-node", "--node-rank"}), "--nproc-per-node");
  EXPECT_EQ(nearest_word("ddp", {"dp", "ddp2", "horovod"}), "dp");
  EXPECT_EQ(nearest_word("pdd", {"dpd", "horovod"}), "dpd") << "swapped neighbours are one mistake";
}

TEST(NearestWord, TreatsDashAndUnderscoreAlike) {
  EXPECT_EQ(nearest_word("--num_node", {"--num-nodes", "--seed"}), "--num-nodes");
}

TEST(NearestWord, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest_word("--bogus", {"--devices", "--strategy"}), std::nullopt);
  EXPECT_EQ(nearest_word("--nope", {"--role"}), std::nullopt) << "two letters of four";
  EXPECT_EQ(nearest_word("", {"a"}), std::nullopt);
  EXPECT_EQ(nearest_word(std::string(100'000, 'x'), {"xx"}), std::nullopt) << "bounded work for any input";
}

TEST(ChoiceError, HintsAtTheNearestChoiceOrElseAtWhatToDo) {
  EXPECT_EQ(nearest_hint("atuo", {"auto", "cpu"}), "did you mean 'auto'?");
  EXPECT_EQ(nearest_hint("abacus", {"auto", "cpu"}), "");
  const UserError error = choice_error("no such kind 'abacus'", "abacus", {"auto", "cpu"}, "use 'cpu'");
  EXPECT_STREQ(error.what(), "no such kind 'abacus'");
  EXPECT_EQ(error.hint(), "use 'cpu'");
}

TEST(JoinWords, ReadsAsAList) {
  EXPECT_EQ(join_words({"a"}), "a");
  EXPECT_EQ(join_words({"a", "b", "c"}, " or "), "a, b or c");
  EXPECT_EQ(join_first({"a", "b", "c"}, 3), "a, b, c");
  EXPECT_EQ(join_first({"a", "b", "c"}, 3, " and "), "a, b and c");
  EXPECT_EQ(join_first({"a", "b", "c", "d"}, 2), "a, b and 2 more");
  EXPECT_EQ(join_first({}, 2), "");
}

}  // namespace
}  // namespace lrun
