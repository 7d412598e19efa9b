#include "process/pidfd.h"

#include <gtest/gtest.h>

#include <csignal>

#include "process/spawn.h"

namespace lrun {
namespace {

SpawnDefaults without_pidfds() {
  SpawnDefaults defaults = SpawnDefaults::of_this_process();
  defaults.use_pidfds = false;
  return defaults;
}

SpawnResult start(const char* program, const char* argument) {
  char* argv[] = {const_cast<char*>(program), const_cast<char*>(argument), nullptr};
  char* envp[] = {nullptr};
  return spawn({.path = program, .argv = argv, .envp = envp}, without_pidfds());
}

TEST(WithoutPidfd, AnEndIsSeenAndReapedOnce) {
  SpawnResult result = start("/bin/true", nullptr);
  ASSERT_TRUE(result.ok()) << result.error_number;
  EXPECT_EQ(result.child->poll_fd(), -1);
  ASSERT_TRUE(result.child->wait_until_ended(Duration(60'000)));
  ASSERT_TRUE(result.child->try_wait());
  EXPECT_TRUE(result.child->status()->success());
  EXPECT_FALSE(result.child->signal(SIGTERM)) << "its number may be another's now";
}

TEST(PidFd, KnowsThePeakMemoryOfAChildThatItHasReaped) {
  char program[] = "/bin/true";
  char* argv[] = {program, nullptr};
  for (const bool use_pidfds : {true, false}) {
    SpawnDefaults defaults = SpawnDefaults::of_this_process();
    defaults.use_pidfds = use_pidfds;
    SpawnResult result = spawn({.path = program, .argv = argv, .envp = argv + 1}, defaults);
    ASSERT_TRUE(result.ok()) << result.error_number;
    ASSERT_TRUE(result.child->wait_until_ended(Duration(60'000)));
    EXPECT_EQ(result.child->peak_memory_kib(), -1);
    ASSERT_TRUE(result.child->try_wait());
    EXPECT_GT(result.child->peak_memory_kib(), 100);
  }
}

TEST(WithoutPidfd, ASignalArrives) {
  SpawnResult result = start("/bin/sleep", "1000");
  ASSERT_TRUE(result.ok()) << result.error_number;
  EXPECT_FALSE(result.child->has_ended());
  EXPECT_FALSE(result.child->try_wait());
  EXPECT_TRUE(result.child->signal(SIGTERM));
  ASSERT_TRUE(result.child->wait_until_ended(Duration(60'000)));
  EXPECT_EQ(result.child->try_wait()->value, SIGTERM);
}

TEST(WithoutPidfd, AProgramThatCannotBeExecutedSaysWhy) {
  const SpawnResult result = start("/nowhere/at-all", nullptr);
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(result.exec_failed);
  EXPECT_EQ(result.error_number, ENOENT);
}

}  // namespace
}  // namespace lrun
