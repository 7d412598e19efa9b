#include "plan/environment_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/user_error.h"
#include "plan/worker_environment.h"

namespace lrun::launcher {
namespace {

using Kind = EnvironmentChange::Kind;

Environment of(std::map<std::string, std::string, std::less<>> variables) { return Environment(std::move(variables)); }

std::vector<EnvironmentChange> changes(std::vector<EnvironmentChange> list) {
  std::vector<EnvironmentChange> result;
  for (EnvironmentChange& change : list) add_change(result, std::move(change));
  return result;
}

EnvironmentChange set(std::string name, std::string value, Source source = Source::kFlag) {
  return {Kind::kSet, std::move(name), std::move(value), source, "--env"};
}

EnvironmentChange unset(std::string name, Source source = Source::kFlag) {
  return {Kind::kUnset, std::move(name), {}, source, "--unset"};
}

TEST(EnvironmentChange, SetsAndTakesOut) {
  const Environment base = of({{"A", "1"}, {"B", "2"}});
  EXPECT_EQ(changed(base, changes({set("A", "x=y"), unset("B"), unset("C")})), of({{"A", "x=y"}}));
}

TEST(EnvironmentChange, TheLastOfANameCounts) {
  EXPECT_EQ(changed({}, changes({set("A", "1"), set("A", "2")})), of({{"A", "2"}}));
  EXPECT_EQ(changed({}, changes({unset("A", Source::kConfig), set("A", "2")})), of({{"A", "2"}}));
  EXPECT_EQ(changed({}, changes({set("A", "2", Source::kConfig), unset("A")})), Environment());
}

TEST(EnvironmentChange, ThatContradictsAnotherIsRefused) {
  try {
    (void)changes({set("A", "1"), unset("A")});
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "'--env A=1' and '--unset A' contradict each other");
  }
}

TEST(EnvironmentChange, OfAVariableThatLrunGivesIsRefused) {
  for (const char* const name : {"RANK", "MASTER_PORT", "LRUN_DEVICES", "LRUN_JOB_SECRET"}) {
    EXPECT_THROW(changes({set(name, "1")}), UserError) << name;
    EXPECT_THROW(changes({unset(name)}), UserError) << name;
  }
  EXPECT_NO_THROW(changes({set("OMP_NUM_THREADS", "4"), unset("CUDA_VISIBLE_DEVICES")}));
}

TEST(EnvironmentChange, APassedOnVariableReachesWorkersThatWouldLackIt) {
  LaunchPlan plan;
  plan.nodes.push_back({});
  const Environment base = of({{"SLURM_PROCID", "5"}, {"PMI_RANK", "6"}});
  plan.setup.environment = changes({{Kind::kPassOn, "SLURM_PROCID", {}, Source::kFlag, "--env"}});
  const WorkerEnvironment environment(plan, plan.nodes.front(), base, {});
  EXPECT_EQ(environment.removed(), std::vector<std::string>{"PMI_RANK"});
  EXPECT_EQ(environment.shared().front(), "SLURM_PROCID=5");
}

TEST(EnvironmentChange, AVariableThatIsNotThereCannotBePassedOn) {
  EXPECT_EQ(warn_about_changes(of({{"A", ""}}), {{Kind::kPassOn, "A", {}, Source::kFlag, "--env"},
                                                 {Kind::kPassOn, "B", {}, Source::kFlag, "--env"}}),
            std::vector<std::string>{"there is no variable 'B' to pass on with '--env B'; 'B=VALUE' would set one"});
}

TEST(EnvironmentChange, WithASecondNameInTheValueAreToldOf) {
  const auto warnings = [](const std::string& value) {
    return warn_about_changes({}, {{Kind::kSet, "LR", value, Source::kFlag, "--env"}});
  };
  EXPECT_THAT(warnings("0.1,BS=3"),
              ::testing::ElementsAre("'--env LR=0.1,BS=3' sets LR alone; '--env BS=VALUE' would set the other one"));
  for (const char* const one : {"INIT,COLL", "a,b=2", "--x=1,--y=2", "1,=2", "1,A"})
    EXPECT_TRUE(warnings(one).empty()) << one;
}

}  // namespace
}  // namespace lrun::launcher
