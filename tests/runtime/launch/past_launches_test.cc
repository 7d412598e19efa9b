#include "runtime/launch/past_launches.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

namespace lrun {
namespace {

TEST(PastLaunches, AreRepeatedAsTheyWent) {
  PastLaunches here;
  EXPECT_EQ(here.next(), 1);
  EXPECT_EQ(here.record(true, [] { return "bytes"; }), "bytes");
  EXPECT_THROW(here.record(true, []() -> std::string { throw WorkersFailed("rank 3 died", 3, 139); }), WorkersFailed);
  EXPECT_THROW(here.record(true, []() -> std::string { throw Unsupported("no fork"); }), Unsupported);
  EXPECT_THROW(here.record(true, []() -> std::string { throw BadEnvironment("no port"); }), BadEnvironment);
  EXPECT_THROW(here.record(true, []() -> std::string { throw std::runtime_error("no memory"); }), std::runtime_error);
  EXPECT_EQ(here.next(), 6);

  LaunchHistory history(Fd(::dup(here.history())));
  PastLaunches in_rank;
  EXPECT_EQ(in_rank.replay(history), "bytes");
  try {
    in_rank.replay(history);
    FAIL() << "the failure was forgotten";
  } catch (const WorkersFailed& error) {
    EXPECT_STREQ(error.what(), "rank 3 died");
    EXPECT_EQ(error.rank(), 3);
    EXPECT_EQ(error.exit_code(), 139);
  }
  EXPECT_THROW(in_rank.replay(history), Unsupported);
  EXPECT_THROW(in_rank.replay(history), BadEnvironment);
  EXPECT_THROW(in_rank.replay(history), Error);
  EXPECT_EQ(in_rank.next(), 6);
  EXPECT_THROW(in_rank.replay(history), std::system_error) << "there was no sixth";
}

TEST(PastLaunches, LieInAFileWithoutAName) {
  PastLaunches here;
  const std::string result(10'000'000, 'x');
  here.record(true, [&] { return result; });
  here.record(true, [&] { return result; });
  struct stat status {};
  ASSERT_EQ(::fstat(here.history(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_TRUE(S_ISREG(status.st_mode));
  EXPECT_GE(status.st_size, 20'000'000);
}

TEST(PastLaunches, AreOnlyCountedWhereNobodyRepeatsThem) {
  PastLaunches here;
  EXPECT_EQ(here.record(false, [] { return "bytes"; }), "bytes");
  EXPECT_EQ(here.next(), 2);
  EXPECT_EQ(here.history(), -1);
}

TEST(PastLaunches, ThatCannotBeKeptFailALaterLaunchAndNotTheirOwn) {
  const char* const before = std::getenv("TMPDIR");
  const std::string folder = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/proc/self/no-such-folder", 1);
  PastLaunches here;
  EXPECT_EQ(here.record(true, [] { return "bytes"; }), "bytes");
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", folder.c_str(), 1);
  EXPECT_EQ(here.record(true, [] { return "more"; }), "more");
  try {
    (void)here.history();
    FAIL() << "ranks would go another way";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("/proc/self/no-such-folder"), std::string::npos) << text;
    EXPECT_NE(text.find("name a folder with room in TMPDIR, or use 'ddp_fork'"), std::string::npos) << text;
  }
}

/// While it lives no file of this process grows beyond `bytes`, like on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit full{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST(LaunchHistory, GivesBackTheRoomOfALaunchThatDidNotFit) {
  LaunchHistory history;
  history.append({.bytes = "bytes"});
  struct stat before {};
  ASSERT_EQ(::fstat(history.fd(), &before), 0);
  {
    const FullDisk disk(100'000);
    EXPECT_THROW(history.append({.bytes = std::string(1'000'000, 'x')}), std::system_error);
  }
  struct stat after {};
  ASSERT_EQ(::fstat(history.fd(), &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
}

TEST(PastLaunches, ThatCannotBeKeptGiveBackTheirRoom) {
  PastLaunches here;
  here.record(true, [] { return "bytes"; });
  const int file = here.history();
  {
    const FullDisk disk(100'000);
    here.record(true, [] { return std::string(1'000'000, 'x'); });
  }
  EXPECT_EQ(::fcntl(file, F_GETFD), -1) << "the file stays open";
  EXPECT_THROW((void)here.history(), Error);
}

}  // namespace
}  // namespace lrun
