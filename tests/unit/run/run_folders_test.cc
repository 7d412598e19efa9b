#include "run/run_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "support/temporary_folder.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFoldersTest : public ::testing::Test {
 protected:
  RunFoldersTest() : plan(plan_of(request_for("2"), cpu_node())) {}

  [[nodiscard]] RunFolders folders() const {
    return {plan, environment_with({{"LRUN_STATE", state}, {"TMPDIR", temporary_.path().string()}})};
  }

  test::TemporaryFolder folder_;
  test::TemporaryFolder temporary_;
  std::string state = (folder_ / "state").string();
  LaunchPlan plan;
};

TEST_F(RunFoldersTest, TheRunDirectoryHasTheLogsUnlessTheUserNamesAnotherPlace) {
  RunFolders all = folders();
  EXPECT_EQ(all.make(true), "");
  ASSERT_NE(all.run(), nullptr);
  EXPECT_EQ(all.run()->path(), fs::path(state) / "demo");
  EXPECT_EQ(all.logs(), all.run());
}

TEST_F(RunFoldersTest, ANamedFolderForLogsHasOneOfTheRunInIt) {
  plan.log_dir.value = (folder_ / "logs").string();
  RunFolders all = folders();
  EXPECT_EQ(all.make(true), "");
  ASSERT_NE(all.logs(), nullptr);
  EXPECT_EQ(all.logs()->path(), folder_ / "logs/demo");
}

TEST_F(RunFoldersTest, TorchrunsFolderIsATemporaryOneAndGoesWhenItIsEmpty) {
  plan.personality.log_folder = Personality::LogFolder::kTorchrun;
  RunFolders all = folders();
  EXPECT_EQ(all.make(true), "");
  ASSERT_NE(all.logs(), nullptr);
  const fs::path logs = all.logs()->path();
  EXPECT_EQ(logs.parent_path().parent_path(), temporary_.path());
  EXPECT_THAT(logs.parent_path().filename().string(), ::testing::StartsWith("torchelastic_"));
  all.remove_unused_logs();
  EXPECT_FALSE(fs::exists(logs.parent_path()));
}

TEST_F(RunFoldersTest, AMissingRecordIsToldOnce) {
  state = "/proc/nowhere";
  plan.log_dir.value = (folder_ / "logs").string();
  RunFolders all = folders();
  EXPECT_THAT(all.make(true), HasSubstr("no record of this run will be kept"));
  EXPECT_EQ(all.make(true), "");
  EXPECT_EQ(all.run(), nullptr);
  EXPECT_NE(all.logs(), nullptr);
}

TEST_F(RunFoldersTest, WithoutAFolderThatWorkersWriteToThereIsNoRun) {
  state = "/proc/nowhere";
  RunFolders all = folders();
  EXPECT_THROW(all.make(true), std::system_error);
  EXPECT_THAT(folders().make(false), HasSubstr("no logs and no record"));
}

TEST_F(RunFoldersTest, ARemovedRunDirectoryIsMadeAnew) {
  RunFolders all = folders();
  (void)all.make(true);
  EXPECT_FALSE(all.is_run_removed());
  fs::remove_all(fs::path(state) / "demo");
  EXPECT_TRUE(all.is_run_removed());
  all.forget_run();
  EXPECT_EQ(all.make(true), "");
  EXPECT_TRUE(fs::exists(fs::path(state) / "demo"));
}

TEST_F(RunFoldersTest, ARunThatDidNotBeginLeavesNothing) {
  RunFolders all = folders();
  (void)all.make(true);
  all.remove();
  EXPECT_FALSE(fs::exists(fs::path(state) / "demo"));
}

}  // namespace
}  // namespace lrun::launcher
