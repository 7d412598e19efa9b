#include "run/job_strength.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lrun::launcher {
namespace {

using Kind = RunEnd::Kind;

RendezvousPlan plan_with(int min_nodes, int max_nodes, Duration replacement = Duration(0)) {
  RendezvousPlan plan;
  plan.min_nodes = min_nodes;
  plan.max_nodes = max_nodes;
  plan.replacement = replacement;
  return plan;
}

const RendezvousPlan kFixed = plan_with(3, 3);
const RendezvousPlan kElastic = plan_with(2, 4);
const RendezvousPlan kReplacing = plan_with(3, 3, Duration(60'000));

TEST(MayLeave, AfterTheGuardsDeathWhereTheOthersCanGoOn) {
  EXPECT_TRUE(may_leave({Kind::kGuardDied}, {kFixed, 2, true, false}));
  EXPECT_FALSE(may_leave({Kind::kGuardDied}, {kFixed, 2, false, false})) << "it leads, and nobody succeeds it";
  EXPECT_FALSE(may_leave({Kind::kGuardDied}, {kFixed, 2, false, true})) << "two are too few, and no other can come";
  EXPECT_TRUE(may_leave({Kind::kHeadLost}, {kElastic, 2, false, true}));
  EXPECT_TRUE(may_leave({Kind::kHeadLost}, {kReplacing, 2, false, true}));
}

TEST(MayLeave, AFailedStartOnlyWhereEnoughNodesAreLeft) {
  EXPECT_TRUE(may_leave({Kind::kStartFailed}, {kElastic, 2, true, false}));
  EXPECT_FALSE(may_leave({Kind::kStartFailed}, {kElastic, 1, true, false}));
  EXPECT_FALSE(may_leave({Kind::kStartFailed}, {kReplacing, 2, true, false})) << "it would fail there again";
}

TEST(MayLeave, ASignalTakesANodeAwayOrEndsTheJob) {
  const RunEnd term{.kind = Kind::kInterrupted, .signal_number = SIGTERM};
  const RunEnd interrupt{.kind = Kind::kInterrupted, .signal_number = SIGINT};
  EXPECT_TRUE(may_leave(term, {kElastic, 2, true, false}));
  EXPECT_FALSE(may_leave(interrupt, {kElastic, 2, true, false})) << "a person means the job";
  EXPECT_TRUE(may_leave(term, {kReplacing, 2, true, false})) << "the others wait for the node";
  EXPECT_FALSE(may_leave(interrupt, {kReplacing, 2, true, false})) << "nor could the job go on";
  EXPECT_TRUE(may_leave(interrupt, {plan_with(2, 4, Duration(60'000)), 2, true, false}));
  RendezvousPlan with_spare = kReplacing;
  with_spare.spares = 1;
  EXPECT_FALSE(may_leave(interrupt, {with_spare, 2, true, false})) << "the spare may be in use";
  const RunEnd hangup{.kind = Kind::kInterrupted, .signal_number = SIGHUP};
  EXPECT_TRUE(may_leave(hangup, {kReplacing, 2, true, false})) << "a connection was lost";
  EXPECT_FALSE(may_leave(term, {kReplacing, 0, true, false})) << "nobody is left";
  RunEnd by_head = term;
  by_head.by_head = true;
  EXPECT_FALSE(may_leave(by_head, {kElastic, 2, true, false})) << "it goes to all nodes";
}

TEST(MayLeave, NotForWhatEndsTheJob) {
  for (const Kind kind : {Kind::kWorkerFailed, Kind::kTimedOut, Kind::kRequested, Kind::kConsoleClosed}) {
    EXPECT_FALSE(may_leave({kind}, {kElastic, 3, true, true})) << name_of(kind);
  }
}

TEST(RemainingText, SaysWhatFollows) {
  EXPECT_EQ(remaining_text(3, kElastic), "; 3 of 2:4 nodes go on");
  EXPECT_EQ(remaining_text(2, kFixed), "; 2 of 3 nodes are left, and no other can come");
  EXPECT_EQ(remaining_text(1, kFixed), "; 1 of 3 nodes is left, and no other can come");
  EXPECT_EQ(remaining_text(2, kReplacing), "; 2 of 3 nodes are left, which wait up to 1m for others");
}

}  // namespace
}  // namespace lrun::launcher
