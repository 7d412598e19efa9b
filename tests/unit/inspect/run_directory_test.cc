#include "inspect/run_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <set>
#include <system_error>

#include "inspect/control_address.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

/// A run that others see: alive as long as the object is.
RunDirectory begun_run(const std::filesystem::path& path, const std::string& name = {}) {
  RunDirectory run(path, {}, name);
  run.begin();
  return run;
}

class RunDirectoryTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder temporary_;
  const std::filesystem::path state_ = temporary_.path();
};

TEST(StateFolder, IsTheUsersWishElseBelowHome) {
  Environment environment;
  environment.set("HOME", "/home/a");
  EXPECT_EQ(state_folder(environment), "/home/a/.local/state/lrun");
  environment.set("XDG_STATE_HOME", "state");
  EXPECT_EQ(state_folder(environment), "/home/a/.local/state/lrun") << "relative";
  environment.set("XDG_STATE_HOME", "/x");
  EXPECT_EQ(state_folder(environment), "/x/lrun");
  environment.set("LRUN_STATE", "/s");
  EXPECT_EQ(state_folder(environment), "/s");
}

TEST_F(RunDirectoryTest, IsPrivateAndLockedWhileItLives) {
  std::optional<RunDirectory> run(begun_run(state_ / "deep" / "run"));
  struct stat status {};
  ASSERT_EQ(::stat(run->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_FALSE(is_stale(run->path()));
  const std::filesystem::path path = run->path();
  run.reset();
  EXPECT_TRUE(is_stale(path));
}

TEST_F(RunDirectoryTest, PruningKeepsTheNewestTheLivingAndWhatIsNoRun) {
  const auto run = [](int second) { return "20260102-03040" + std::to_string(second) + "-abc123"; };
  for (const int second : {1, 2, 3, 4}) (void)begun_run(state_ / run(second));
  const RunDirectory living = begun_run(state_ / run(0));
  std::filesystem::create_directory(state_ / "00-not-a-run");
  (void)begun_run(state_ / "00-another-lock");
  prune_runs(Folder::open(state_), 2, 5);
  EXPECT_TRUE(std::filesystem::exists(state_ / run(1))) << "five are tolerated";
  prune_runs(Folder::open(state_), 2, 4);
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(state_)) left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"00-another-lock", "00-not-a-run", run(0), run(3), run(4)}));
}

TEST_F(RunDirectoryTest, PruningTakesWhatALauncherLeftThatWasKilledBeforeItsRunBegan) {
  const std::string abandoned = "20260102-030400-abc123";
  const std::string starting = "20260102-030401-abc123";
  const std::string begun = "20260102-030402-abc123";
  { const RunDirectory run(state_ / abandoned); }
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(state_ / abandoned / "lock.new", long_ago);
  const RunDirectory living(state_ / starting);
  (void)begun_run(state_ / begun);
  EXPECT_TRUE(parts_of_run(state_ / abandoned).empty());
  prune_runs(Folder::open(state_), 1, 1);
  EXPECT_FALSE(std::filesystem::exists(state_ / abandoned));
  EXPECT_TRUE(std::filesystem::exists(state_ / starting));
  EXPECT_TRUE(std::filesystem::exists(state_ / begun));
}

TEST_F(RunDirectoryTest, PruningCountsRunsOnly) {
  for (int i = 0; i < 20; ++i) std::filesystem::create_directory(state_ / ("zz" + std::to_string(i)));
  const std::vector<std::string> runs{"20260102-030400-abc123", "20260102-030401-abc123"};
  for (const std::string& run : runs) (void)begun_run(state_ / run);
  prune_runs(Folder::open(state_), 2, 2);
  for (const std::string& run : runs) EXPECT_TRUE(std::filesystem::exists(state_ / run));
}

TEST_F(RunDirectoryTest, PruningDoesNotCountLaunchersThatWaitForTheirJob) {
  const std::filesystem::path ended = state_ / "20260102-030400-abc123";
  (void)begun_run(ended);
  const RunDirectory one(state_ / "20260102-030401-abc123");
  const RunDirectory other(state_ / "20260102-030402-abc123");
  for (const RunDirectory* const waiting : {&one, &other}) {
    ASSERT_EQ(::mknod((waiting->path() / kControlName).c_str(), S_IFSOCK | 0600, 0), 0);
  }
  prune_runs(Folder::open(state_), 1, 1);
  EXPECT_TRUE(std::filesystem::exists(ended));
}

TEST_F(RunDirectoryTest, PruningTakesAJobWhenNoneOfItsLaunchersLives) {
  const std::filesystem::path ended = state_ / "20260102-030400-abc123";
  const std::filesystem::path living = state_ / "20260102-030401-abc123";
  const std::filesystem::path newest = state_ / "20260102-030402-abc123";
  RunDirectory launcher(living, "b");
  launcher.begin();
  for (const auto& job : {ended, living}) RunDirectory(job, "a").begin();
  (void)begun_run(newest);
  prune_runs(Folder::open(state_), 1, 1);
  EXPECT_FALSE(std::filesystem::exists(ended));
  EXPECT_TRUE(std::filesystem::exists(living / "a")) << "it goes with the job";
  EXPECT_TRUE(std::filesystem::exists(newest));
}

TEST_F(RunDirectoryTest, LaunchersOfOneNameHavePartsOfTheirOwn) {
  const std::filesystem::path job = state_ / "job";
  RunDirectory first(job, "host");
  RunDirectory second(job, "host");
  EXPECT_EQ(first.path(), job / "host");
  EXPECT_EQ(second.path(), job / "host-2");
  first.remove();
  EXPECT_FALSE(std::filesystem::exists(job / "host"));
  EXPECT_TRUE(std::filesystem::exists(job / "host-2"));
  second.remove();
  EXPECT_TRUE(std::filesystem::is_empty(state_)) << "the last one takes the job's folder along";
}

TEST_F(RunDirectoryTest, RefusesAFolderThatOthersCouldTamperWith) {
  ASSERT_EQ(::chmod(state_.c_str(), 0777), 0);
  EXPECT_THROW(RunDirectory(state_ / "run"), std::system_error);
  ASSERT_EQ(::chmod(state_.c_str(), 01777), 0);
  EXPECT_NO_THROW(RunDirectory(state_ / "run")) << "sticky, as /tmp: nobody else can rename";
  EXPECT_THROW(RunDirectory(state_ / "run"), std::system_error) << "a run's folder is new";
}

TEST_F(RunDirectoryTest, MakesItsFoldersForItsOwnerAloneWhateverTheUmask) {
  for (const mode_t mask : {0U, 0777U}) {
    const mode_t before = ::umask(mask);
    const std::filesystem::path state = state_ / std::to_string(mask) / "state";
    EXPECT_NO_THROW(RunDirectory(state / "run"));
    EXPECT_NO_THROW(RunDirectory(state / "another")) << "what it made it does not refuse";
    EXPECT_EQ(::umask(before), mask) << "the workers' umask is the user's";
    for (const auto& made : {state.parent_path(), state, state / "run"}) {
      struct stat status {};
      ASSERT_EQ(::stat(made.c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0777U, 0700U) << made;
    }
  }
}

TEST_F(RunDirectoryTest, WritesNothingIntoAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chown(state_.c_str(), kNobody, kNobody), 0);
  EXPECT_THROW(RunDirectory(state_ / "run"), std::system_error);
  EXPECT_TRUE(std::filesystem::is_empty(state_));
}

TEST_F(RunDirectoryTest, FollowsALinkOfTheUsersAndNoneThatAnotherUserLaid) {
  const test::TemporaryFolder elsewhere;
  std::filesystem::create_directory_symlink(elsewhere.path(), state_ / "link");
  EXPECT_NO_THROW(RunDirectory(state_ / "link" / "run"));
  EXPECT_TRUE(std::filesystem::exists(elsewhere / "run"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a link to another user";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::lchown((state_ / "link").c_str(), kNobody, kNobody), 0);
  EXPECT_THROW(RunDirectory(state_ / "link" / "another"), std::system_error);
  EXPECT_FALSE(std::filesystem::exists(elsewhere / "another"));
}

TEST_F(RunDirectoryTest, PruningFollowsNoLinkAndLeavesOtherUsersRuns) {
  const test::TemporaryFolder elsewhere;
  const std::string foreign = "20260102-030401-abc123";
  (void)begun_run(elsewhere / foreign);
  std::filesystem::create_directory_symlink(elsewhere / foreign, state_ / "20260102-030400-abc123");
  if (::geteuid() == 0) {
    (void)begun_run(state_ / foreign);
    ASSERT_EQ(::chown((state_ / foreign).c_str(), 65534, 65534), 0);
  }
  const std::string own[] = {"20260102-030402-abc123", "20260102-030403-abc123"};
  for (const std::string& run : own) (void)begun_run(state_ / run);
  prune_runs(Folder::open(state_), 1, 1);
  EXPECT_TRUE(std::filesystem::exists(elsewhere / foreign / "lock"));
  EXPECT_TRUE(std::filesystem::is_symlink(state_ / "20260102-030400-abc123"));
  EXPECT_EQ(std::filesystem::exists(state_ / foreign), ::geteuid() == 0);
  EXPECT_FALSE(std::filesystem::exists(state_ / own[0]));
  EXPECT_TRUE(std::filesystem::exists(state_ / own[1]));
}

TEST_F(RunDirectoryTest, GoesWithAllThatIsInIt) {
  RunDirectory run(state_ / "run");
  ASSERT_TRUE(run.folder().inner("attempt_0/0"));
  run.remove();
  EXPECT_TRUE(std::filesystem::is_empty(state_));
  EXPECT_TRUE(run.folder().is_removed());
}

}  // namespace
}  // namespace lrun::launcher
