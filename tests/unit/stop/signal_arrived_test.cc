#include <gtest/gtest.h>

#include <csignal>

#include "stop/policy.h"

namespace lrun {
namespace {

TEST(SignalArrived, EndsARunAsWhatItStandsFor) {
  EXPECT_EQ((SignalArrived{.signal_number = SIGTERM, .by_head = true}.end()),
            (RunEnd{.kind = RunEnd::Kind::kInterrupted, .signal_number = SIGTERM, .by_head = true}));
  EXPECT_EQ((SignalArrived{.signal_number = SIGHUP, .head_lost = true}.end()), RunEnd{.kind = RunEnd::Kind::kHeadLost});
}

}  // namespace
}  // namespace lrun
