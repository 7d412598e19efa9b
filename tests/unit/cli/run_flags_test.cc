#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(RunFlags, NameTheRangeOfANumber) {
  expect_refused({
      {"--seed=-1",
       "lrun: error: '--seed -1': not a whole number; allowed: 0 to 18446744073709551615\n"
       "lrun: hint: for example '--seed 0'\n"},
      {"--seed=18446744073709551616",
       "lrun: error: '--seed 18446744073709551616': out of range; allowed: 0 to 18446744073709551615\n"
       "lrun: hint: for example '--seed 18446744073709551615'\n"},
      {"--master-port=65536",
       "lrun: error: '--master-port 65536': out of range; allowed: 0 to 65535\n"
       "lrun: hint: for example '--master-port 65535'\n"},
      {"--master-port=http",
       "lrun: error: '--master-port http': not a whole number; allowed: 0 to 65535\n"
       "lrun: hint: for example '--master-port 0'\n"},
      {"--grace=soon",
       "lrun: error: '--grace soon': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--grace 30s'\n"},
      {"--settle=never",
       "lrun: error: '--settle never': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--settle 2s'\n"},
      {"--max-restarts=x",
       "lrun: error: '--max-restarts x': not a whole number; allowed: 0 to 2147483647\n"
       "lrun: hint: for example '--max-restarts 0'\n"},
      {"--max-restarts=-1",
       "lrun: error: '--max-restarts -1': out of range; allowed: 0 to 2147483647\n"
       "lrun: hint: for example '--max-restarts 0'\n"},
      {"--timeout=0",
       "lrun: error: '--timeout 0': no time at all\n"
       "lrun: hint: 'none' is no limit\n"},
      {"--start-timeout=soon",
       "lrun: error: '--start-timeout soon': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--start-timeout 5m'\n"},
      {"--restart-backoff=long",
       "lrun: error: '--restart-backoff long': not a time; allowed: a number with ms, s, m, h or d\n"
       "lrun: hint: for example '--restart-backoff 30s'\n"},
      {"--log-dir=",
       "lrun: error: '--log-dir=': the name of a directory is missing\n"
       "lrun: hint: '/dev/null' switches log files off\n"},
  });
}

}  // namespace
}  // namespace lrun::launcher
