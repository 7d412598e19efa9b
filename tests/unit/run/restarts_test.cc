#include "run/restarts.h"

#include <gtest/gtest.h>

#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

Verdict failure() {
  FailureRecord record;
  record.ending = FailureRecord::Ending::kExited;
  record.value = 1;
  record.cause = Cause::kOwnError;
  return judge({RunEnd::Kind::kWorkerFailed}, {record});
}

LaunchPlan plan_with(int most) {
  LaunchPlan plan = plan_of(request_for("2"), cpu_node());
  plan.max_restarts.value = most;
  plan.personality.repeats_identical = true;
  return plan;
}

TEST(Restarts, AreCountedUntilNoneIsLeft) {
  Restarts restarts(plan_with(2));
  for (const int used : {1, 2}) {
    const RestartChoice choice = restarts.choice_after(failure());
    EXPECT_EQ(choice.kind, RestartChoice::Kind::kRestart);
    restarts.make(choice);
    EXPECT_EQ(restarts.last().history.used, used);
  }
  EXPECT_EQ(restarts.choice_after(failure()).kind, RestartChoice::Kind::kUsedUp);
}

TEST(Restarts, AChoiceThatIsNotMadeChangesNothing) {
  Restarts restarts(plan_with(2));
  (void)restarts.choice_after(failure());
  EXPECT_EQ(restarts.last(), RestartChoice());
}

TEST(Restarts, TheHistoryOfAJobIsTaken) {
  Restarts restarts(plan_with(2));
  restarts.take_history(to_json(RestartHistory{2, 2, {}}));
  EXPECT_EQ(restarts.choice_after(failure()).kind, RestartChoice::Kind::kUsedUp);
  restarts.take_history("no history");
  EXPECT_EQ(restarts.last().history.used, 2) << "text that cannot be read changes nothing";
}

TEST(Restarts, AnAttemptThatStartsAgainHasAFolderOfItsOwn) {
  Restarts restarts(plan_with(2));
  EXPECT_EQ(restarts.next_folder(0), "attempt_0");
  EXPECT_EQ(restarts.next_folder(0), "attempt_0_again_1");
  EXPECT_EQ(restarts.next_folder(1), "attempt_1");
  EXPECT_EQ(restarts.next_folder(0), "attempt_0_again_2");
}

}  // namespace
}  // namespace lrun::launcher
