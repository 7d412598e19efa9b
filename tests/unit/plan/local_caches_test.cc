#include "plan/local_caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Environment kHome = environment_with({{"HOME", "/home/ada"}});

AllocatedNode node_with_caches_on_nfs() {
  AllocatedNode node = cpu_node();
  for (std::string& folder : cache_folders(request_for("1"), kHome))
    node.network_folders.emplace(std::move(folder), "NFS");
  node.local_folder = "/tmp/lrun-caches-7";
  return node;
}

/// NAME=value of what the plan sets.
std::vector<std::string> set_by(const LaunchPlan& plan) {
  std::vector<std::string> entries;
  for (const EnvironmentChange& change : plan.setup.environment) entries.push_back(change.name + "=" + change.value);
  return entries;
}

TEST(LocalCaches, AreAskedForWhereTheUserNamesNone) {
  EXPECT_THAT(cache_folders(request_for("1"), kHome), Contains("/home/ada/.triton/cache"));
  const Environment own =
      environment_with({{"HOME", "/home/ada"}, {"TRITON_HOME", "/scratch"}, {"XDG_CACHE_HOME", "/c"}});
  EXPECT_THAT(cache_folders(request_for("1"), own), Not(Contains("/home/ada/.triton/cache")));
  EXPECT_THAT(cache_folders(request_for("1"), own), Contains("/c/numba"));
  EXPECT_THAT(cache_folders(request_for("1"), Environment()), IsEmpty());
  LaunchRequest as_torchrun = request_for("1");
  as_torchrun.compat = Compat::kTorchrun;
  EXPECT_THAT(cache_folders(as_torchrun, kHome), IsEmpty());
}

TEST(LocalCaches, AreInTheNodesFolder) {
  const LaunchPlan plan = plan_of(request_for("1"), node_with_caches_on_nfs(), kHome);
  EXPECT_THAT(set_by(plan), Contains("CUDA_CACHE_PATH=/tmp/lrun-caches-7/cuda"));
  EXPECT_EQ(plan.cache_folder, "/tmp/lrun-caches-7");
  EXPECT_THAT(plan.warnings, IsEmpty());
}

TEST(LocalCaches, StayWithOneWarningWhereTheNodeHasNoFolder) {
  AllocatedNode node = node_with_caches_on_nfs();
  node.local_folder.clear();
  node.local_folder_problem = "'/tmp/lrun-caches-7' belongs to another user";
  const LaunchPlan plan = plan_of(request_for("1"), node, kHome);
  EXPECT_THAT(plan.setup.environment, IsEmpty());
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_THAT(plan.warnings.front(), HasSubstr("stay on NFS"));
}

TEST(LocalCaches, StayWhereTheyAreOnTheNodesOwnDisk) {
  const LaunchPlan plan = plan_of(request_for("1"), cpu_node(), kHome);
  EXPECT_THAT(plan.setup.environment, IsEmpty());
  EXPECT_EQ(plan.cache_folder, "");
}

TEST(LocalCaches, LeaveTheUsersChangesAlone) {
  LaunchRequest request = request_for("1");
  request.setup.environment = {{EnvironmentChange::Kind::kUnset, "NUMBA_CACHE_DIR", "", Source::kFlag, "--unset"},
                               {EnvironmentChange::Kind::kSet, "CUDA_CACHE_PATH", "/c", Source::kFlag, "--env"}};
  const std::vector<std::string> entries = set_by(plan_of(request, node_with_caches_on_nfs(), kHome));
  EXPECT_THAT(entries, Contains("CUDA_CACHE_PATH=/c"));
  EXPECT_THAT(entries, Contains("NUMBA_CACHE_DIR="));
}

}  // namespace
}  // namespace lrun::launcher
