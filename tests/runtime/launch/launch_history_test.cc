#include "runtime/launch/launch_history.h"

#include <c10/util/Type.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <lrun/error.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <vector>

namespace lrun::detail {
namespace {

TEST(PastLaunches, AreRepeatedAsTheyWent) {
  PastLaunches here;
  EXPECT_EQ(here.next(), 1);
  EXPECT_EQ(here.record(true, [] { return "bytes"; }), "bytes");
  EXPECT_THROW(here.record(true, []() -> std::string { throw WorkersFailed("rank 3 died", 3, 139); }), WorkersFailed);
  EXPECT_THROW(here.record(true, []() -> std::string { throw Unsupported("no fork"); }), Unsupported);
  EXPECT_THROW(here.record(true, []() -> std::string { throw BadEnvironment("no port"); }), BadEnvironment);
  EXPECT_EQ(here.next(), 5);

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
  EXPECT_EQ(in_rank.next(), 5);
  EXPECT_THROW(in_rank.replay(history), std::system_error) << "there was no fifth";
}

struct OfTheProgram : std::out_of_range {
  using std::out_of_range::out_of_range;
};

struct NoText : std::exception {};

/// Class and text.
std::string described(const std::function<std::string()>& launch) {
  try {
    launch();
    return "nothing was thrown";
  } catch (const std::exception& error) {
    return c10::demangle(typeid(error).name()) + ": " + error.what();
  }
}

TEST(PastLaunches, ThrowTheSameClassInRanks) {
  PastLaunches here;
  std::vector<std::string> thrown;
  const auto record = [&](const auto& error) {
    thrown.push_back(described([&] { return here.record(true, [&]() -> std::string { throw error; }); }));
  };
  record(Unsupported("no fork"));
  record(BadEnvironment("no port"));
  record(Error("no room"));
  record(std::invalid_argument("the timeout of a launch is negative"));
  record(std::out_of_range("no such rank"));
  record(std::logic_error("two launches"));
  record(std::runtime_error("no luck"));
  record(std::bad_alloc());
  record(std::system_error(EMFILE, std::generic_category(), "memfd_create"));
  record(OfTheProgram("its nearest base"));
  record(NoText());
  LaunchHistory history(Fd(::dup(here.history())));
  PastLaunches in_rank;
  std::vector<std::string> replayed;
  for (std::size_t launch = 0; launch < thrown.size(); ++launch) {
    replayed.push_back(described([&] { return in_rank.replay(history); }));
  }
  thrown[9] = "std::out_of_range: its nearest base";
  thrown[10] = "lrun::Error: std::exception";
  EXPECT_EQ(replayed, thrown);
}

TEST(PastLaunches, KeepTheCodeOfASystemError) {
  PastLaunches here;
  EXPECT_THROW(
      here.record(true, []() -> std::string { throw std::system_error(EAGAIN, std::generic_category(), "fork"); }),
      std::system_error);
  LaunchHistory history(Fd(::dup(here.history())));
  try {
    PastLaunches().replay(history);
    FAIL() << "the failure was forgotten";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::resource_unavailable_try_again);
  }
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
}  // namespace lrun::detail
