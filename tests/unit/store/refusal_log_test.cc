#include "store/refusal_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

class RefusalLogTest : public ::testing::Test {
 protected:
  std::string refused(const std::string& reason, SteadyTime now) {
    return log_.refused("127.0.0.1:7", reason, now).value_or("");
  }

  RefusalLog log_;
  const SteadyTime start_ = SteadyTime(1h);
};

TEST_F(RefusalLogTest, SaysTheFirstOfEachReason) {
  EXPECT_EQ(refused("a", start_), "store: closed the connection of 127.0.0.1:7: a");
  EXPECT_EQ(refused("a", start_), "");
  EXPECT_EQ(refused("b", start_), "store: closed the connection of 127.0.0.1:7: b; and 1 more connection before");
  EXPECT_EQ(log_.take_rest(), "");
}

TEST_F(RefusalLogTest, SaysAtMostOneAMinuteThen) {
  (void)refused("a", start_);
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(refused("a", start_ + 59s), "");
  EXPECT_EQ(refused("a", start_ + 60s),
            "store: closed the connection of 127.0.0.1:7: a; and 3000 more connections before");
  EXPECT_EQ(refused("a", start_ + 61s), "");
}

TEST_F(RefusalLogTest, TellsTheRestOnce) {
  for (int i = 0; i < 3; ++i) (void)refused("a", start_);
  EXPECT_EQ(log_.take_rest(), "store: refused 2 more connections");
  EXPECT_EQ(log_.take_rest(), "");
}

TEST_F(RefusalLogTest, SpeaksOfWhateverRefuses) {
  RefusalLog log("turned away a launcher at", "turned away");
  EXPECT_EQ(log.refused("10.0.0.7", "a", start_).value_or(""), "turned away a launcher at 10.0.0.7: a");
  (void)log.refused("10.0.0.7", "a", start_);
  EXPECT_EQ(log.take_rest(), "turned away 1 more connection");
}

TEST_F(RefusalLogTest, IsBoundedWhateverReasonsAStrangerGives) {
  int lines = 0;
  for (int i = 0; i < 256; ++i) lines += refused("unknown request " + std::to_string(i), start_).empty() ? 0 : 1;
  EXPECT_EQ(lines, 8);
}

}  // namespace
}  // namespace lrun::launcher
