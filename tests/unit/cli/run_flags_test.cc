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

}  // namespace
}  // namespace lrun::launcher
