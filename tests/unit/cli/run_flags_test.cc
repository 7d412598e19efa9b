#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(RunFlags, NameTheRangeOfANumber) {
  expect_refused({
      {"--grace=soon", {"'--grace soon'", "allowed: a number with ms, s, m, h or d", "'--grace 30s'"}},
      {"--settle=never", {"'--settle never'", "allowed: a number with ms, s, m, h or d", "'--settle 2s'"}},
      {"--max-restarts=x",
       {"'--max-restarts x': not a whole number", "allowed: 0 to 2147483647", "'--max-restarts 3'"}},
      {"--max-restarts=-1", {"'--max-restarts -1': out of range", "allowed: 0 to 2147483647", "'--max-restarts 3'"}},
      {"--timeout=0", {"'--timeout 0'", "'none'"}},
      {"--start-timeout=soon",
       {"'--start-timeout soon'", "allowed: a number with ms, s, m, h or d", "'--start-timeout 5m'"}},
      {"--restart-backoff=long",
       {"'--restart-backoff long'", "allowed: a number with ms, s, m, h or d", "'--restart-backoff 30s'"}},
  });
}

TEST(RunFlags, TakeRulesForAllRanksOrForSome) {
  const LaunchRequest request = request_of({"--watch", "loss=([^ ]+)", "--watch@0,2-3=CUDA error => warn", "p"});
  ASSERT_EQ(request.output.watch.size(), 2U);
  EXPECT_EQ(request.output.watch[0].origin, "--watch");
  EXPECT_EQ(request.output.watch[1].text, "CUDA error => warn");
  EXPECT_EQ(request.output.watch[1].ranks, (RankRanges{{0, 0}, {2, 3}}));
  expect_refused({
      {"--watch=loss=(x", {"'--watch loss=(x'", "'('", "'\\('"}},
      {"--watch=a(b) => nam", {"'nam' is no test and no reaction", "silent 5m"}},
      {"--watch@x=a", {"'@'", "'--watch@0'"}},
  });
}

TEST(RunFlags, TakeNoMoreRulesThanAreWatched) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i <= WatchRule::kMost; ++i) words.insert(words.end(), {"--watch", "a"});
  words.emplace_back("./train");
  EXPECT_THAT(refusal(words), HasFacts(Facts{"there are 16 rules already", "'|'"}));
}

}  // namespace
}  // namespace lrun::launcher
