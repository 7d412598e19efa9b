#include "logs/line_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

WatchRule rule_of(const std::string& text, RankRanges ranks = {}) {
  WatchRule rule = std::get<WatchRule>(parse_watch_rule(text));
  rule.ranks = std::move(ranks);
  return rule;
}

class LineWatchTest : public ::testing::Test {
 protected:
  std::vector<std::string> read(std::string_view bytes, int rank = 0) {
    return texts_of(watch.read(rank, LogStream::kOut, bytes, now));
  }
  static std::vector<std::string> texts_of(const std::vector<WatchFinding>& findings) {
    std::vector<std::string> texts;
    for (const WatchFinding& finding : findings) texts.push_back(finding.text);
    return texts;
  }

  SteadyTime now{std::chrono::hours(1)};
  LineWatch watch{{rule_of("loss=([^ ]+)")}};
};

TEST_F(LineWatchTest, QuotesTheLineOnceARankAndAgainAfterAGoodOne) {
  EXPECT_THAT(read("step 1 loss=2.5\nstep 2 loss=nan \n"), ElementsAre("rank 0 printed nan: 'step 2 loss=nan'"));
  EXPECT_THAT(read("loss=nan\n"), IsEmpty());
  EXPECT_THAT(read("loss=-inf\n", 3), ElementsAre("rank 3 printed -inf: 'loss=-inf'"));
  EXPECT_THAT(read("loss=2\nloss=inf\n"), IsEmpty()) << "not twice in a minute";
  now += std::chrono::minutes(1);
  EXPECT_THAT(read("loss=inf\nloss=2\nloss=inf\n"), ElementsAre("rank 0 printed inf: 'loss=inf'"));
}

TEST_F(LineWatchTest, PutsLinesTogetherAndEndsThemAsProgressBarsDo) {
  EXPECT_THAT(read("\r10% lo"), IsEmpty());
  EXPECT_THAT(watch.read(0, LogStream::kErr, "ss=nan\n", now), IsEmpty()) << "another stream has lines of its own";
  EXPECT_THAT(read("ss=na"), IsEmpty());
  EXPECT_THAT(read("n\r11% loss=1"), ElementsAre("rank 0 printed nan: '10% loss=nan'"));
}

TEST_F(LineWatchTest, ReadsTheBeginningOfALongLine) {
  const std::string filler(2 * LineWatch::kLongestLine, 'x');
  EXPECT_THAT(read(filler + "loss=nan\n"), IsEmpty());
  EXPECT_THAT(read("loss=nan " + filler), IsEmpty());
  EXPECT_EQ(read(filler + "\n").size(), 1U);
}

TEST_F(LineWatchTest, IgnoresWhatIsNoNumber) {
  EXPECT_THAT(read("loss=unknown\nloss=\nloss=n/a\nloss=nanometers\nloss=info\nloss=1,234\n"), IsEmpty());
  EXPECT_THAT(watch.idle(), ElementsAre(Pair(0U, "the first group was 'unknown' and never a number, by")));
  EXPECT_THAT(read("loss=nan,\n"), ElementsAre("rank 0 printed nan: 'loss=nan,'"));
  EXPECT_THAT(read("loss=tensor(nan, device='cuda:0')\n", 1), SizeIs(1));
  EXPECT_THAT(read("loss=\"nan\"\n", 2), SizeIs(1));
  EXPECT_THAT(watch.idle(), IsEmpty());
}

TEST_F(LineWatchTest, ComparesWithLimits) {
  watch = LineWatch({rule_of("loss=([^ ]+) => > 100, < -1")});
  EXPECT_THAT(read("loss=100\nloss=-1\nloss=nan\n"), IsEmpty());
  EXPECT_THAT(read("loss=100.5\n"), ElementsAre("rank 0 printed 100.5, above 100: 'loss=100.5'"));
  now += std::chrono::minutes(1);
  EXPECT_THAT(read("loss=0\nloss=-2\n"), ElementsAre("rank 0 printed -2, below -1: 'loss=-2'"));
}

TEST_F(LineWatchTest, ComparesWithTheMedianOnceThereIsOne) {
  watch = LineWatch({rule_of("loss=([^ ]+) => 3x")});
  EXPECT_THAT(read("loss=1\nloss=50\n"), IsEmpty()) << "two numbers are no median";
  for (int i = 0; i < 10; ++i) EXPECT_THAT(read("loss=2\n"), IsEmpty());
  EXPECT_THAT(read("loss=6\n"), IsEmpty());
  EXPECT_THAT(read("loss=9\n"), ElementsAre("rank 0 printed 9, 4.5 times its median of 2: 'loss=9'"));
  EXPECT_THAT(read("loss=9\n", 1), IsEmpty()) << "each rank has its own";
}

TEST_F(LineWatchTest, SeesLinesOfItsRanksOnly) {
  watch = LineWatch({rule_of("CUDA error", {{1, 2}}), rule_of("Xid|ECC")});
  EXPECT_THAT(read("CUDA error 700\n"), IsEmpty());
  EXPECT_THAT(read("a CUDA error\nan ECC error\n", 2),
              ElementsAre("rank 2 printed 'a CUDA error'", "rank 2 printed 'an ECC error'"));
}

TEST_F(LineWatchTest, CountsSilenceFromTheLastMatch) {
  watch = LineWatch({rule_of("step ([0-9]+) => silent 10s")});
  EXPECT_EQ(watch.next_silence(), std::nullopt);
  EXPECT_THAT(watch.idle(), ElementsAre(Pair(0U, "no line matched")));
  EXPECT_THAT(read("importing\nstep 1\n"), IsEmpty());
  EXPECT_THAT(watch.idle(), IsEmpty());
  const SteadyTime due = now + Duration(10'000);
  EXPECT_EQ(watch.next_silence(), due);
  EXPECT_THAT(watch.silent(due - Duration(1), {0}), IsEmpty());
  EXPECT_THAT(texts_of(watch.silent(due, {0, 1})), ElementsAre("rank 0 printed nothing like 'step ([0-9]+)' for 10s"));
  EXPECT_THAT(watch.silent(due, {0, 1}), IsEmpty());
  EXPECT_EQ(watch.next_silence(), std::nullopt);
  now = due;
  EXPECT_THAT(read("step 2\n"), IsEmpty());
  watch.wait_anew(due + Duration(5'000));
  EXPECT_EQ(watch.next_silence(), due + Duration(15'000));
}

TEST_F(LineWatchTest, HearsNoSilenceOfARankThatHasEnded) {
  watch = LineWatch({rule_of("step => silent 10s")});
  EXPECT_THAT(read("step 1\n"), IsEmpty());
  EXPECT_THAT(watch.silent(now + Duration(10'000), {1}), IsEmpty());
  EXPECT_EQ(watch.next_silence(), std::nullopt);
}

TEST_F(LineWatchTest, ReadsALineThatStandsStillOnce) {
  watch = LineWatch({rule_of("loss=([^ ]+) => 3x, nan")});
  EXPECT_FALSE(watch.has_unfinished());
  EXPECT_THAT(read("\r10% loss=1"), IsEmpty());
  EXPECT_TRUE(watch.has_unfinished());
  EXPECT_THAT(texts_of(watch.read_unfinished(now)), IsEmpty());
  EXPECT_FALSE(watch.has_unfinished());
  EXPECT_THAT(read("\r11% loss=nan"), IsEmpty());
  EXPECT_THAT(texts_of(watch.read_unfinished(now)), ElementsAre("rank 0 printed nan: '11% loss=nan'"));
  now += std::chrono::minutes(1);
  EXPECT_THAT(read("\n"), IsEmpty());
}

TEST_F(LineWatchTest, QuotesTheValueOfALongLine) {
  const std::string filler(300, 'x');
  const std::vector<std::string> found = read(filler + " loss=nan " + filler + "\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0], HasSubstr("x loss=nan x"));
  EXPECT_LT(found[0].size(), 160U);
}

TEST_F(LineWatchTest, IgnoresANumberThatIsCut) {
  watch = LineWatch({rule_of("loss=([^ ]+) => < 100")});
  const std::string filler(LineWatch::kLongestLine - 8, 'x');
  EXPECT_THAT(read(filler + " loss=1234567\n"), IsEmpty());
}

TEST_F(LineWatchTest, ReadsLinesAsATerminalShowsThem) {
  EXPECT_THAT(read("loss=\x1b[31mnan\x1b[0m \x07\n"), ElementsAre("rank 0 printed nan: 'loss=nan \\x07'"));
  EXPECT_THAT(read("\x1b[33mloss\x1b[0m=nan\n", 1), ElementsAre("rank 1 printed nan: 'loss=nan'"));
}

}  // namespace
}  // namespace lrun::launcher
