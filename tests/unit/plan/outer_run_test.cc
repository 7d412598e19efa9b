#include "plan/outer_run.h"

#include <gtest/gtest.h>

#include "planning.h"
#include "support/mentions.h"

namespace lrun::launcher {
namespace {

Environment of_worker(const std::string& rank, const std::string& world_size) {
  return environment_with({{"LRUN_RUN_ID", "20261123-180000-abcdef"},
                           {"TORCHELASTIC_RUN_ID", "mine"},
                           {"RANK", rank},
                           {"WORLD_SIZE", world_size}});
}

TEST(OuterRun, OfSeveralRanksIsNamedByItsRank0) {
  EXPECT_THAT(plan_of(request_for("2"), cpu_node(), of_worker("0", "4")).warnings,
              testing::ElementsAre(mentions({"rank 0 of run '20261123-180000-abcdef'", "4 ranks", "'--nested'"})));
  const Environment torchrun = environment_with({{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}});
  EXPECT_THAT(warn_about_outer_run(request_for("2"), torchrun),
              mentions({"rank 0 of torchrun's 'none'", "4 ranks", "'--nested'"}));
}

TEST(OuterRun, IsNotToldTwiceNorWhereNothingIsApart) {
  EXPECT_EQ(warn_about_outer_run(request_for("2"), of_worker("1", "4")), "") << "rank 0 says it";
  EXPECT_EQ(warn_about_outer_run(request_for("2"), of_worker("0", "1")), "") << "it is the only one";
  EXPECT_EQ(warn_about_outer_run(request_for("2"), environment_with({{"RANK", "0"}, {"WORLD_SIZE", "4"}})), "")
      << "a manager's variables";
}

TEST(OuterRun, IsNotToldToThoseWhoMeanIt) {
  LaunchRequest request = request_for("2");
  request.nested = true;
  EXPECT_EQ(warn_about_outer_run(request, of_worker("0", "4")), "");
}

}  // namespace
}  // namespace lrun::launcher
