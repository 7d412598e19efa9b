#include "runtime/launch/board.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <system_error>

namespace lrun {
namespace {

using Stage = LaunchBoard::Stage;

const std::vector<PastLaunch> kPast = {{PastLaunch::Outcome::kReturned, -1, 0, std::string("a\0b", 3)},
                                       {PastLaunch::Outcome::kWorkersFailed, 2, 139, "rank 2 died"}};

TEST(LaunchBoard, GivesARankWhatTheLaunchWroteAndBack) {
  LaunchBoard launch = LaunchBoard::create(3, kPast);
  LaunchBoard rank = LaunchBoard::open(Fd(::dup(launch.fd())));
  EXPECT_EQ(rank.ranks(), 3);
  EXPECT_EQ(rank.past(), kPast);
  EXPECT_EQ(launch.result(), "");
  rank.set_stage(2, Stage::kThrew);
  rank.set_error(2, "what it threw");
  rank.append("one ");
  rank.append("two");
  EXPECT_EQ(launch.stage(2), Stage::kThrew);
  EXPECT_EQ(launch.error(2), "what it threw");
  EXPECT_EQ(launch.stage(1), Stage::kStarted);
  EXPECT_EQ(launch.error(1), "");
  EXPECT_EQ(launch.result(), "one two");
}

TEST(LaunchBoard, CutsALongError) {
  LaunchBoard board = LaunchBoard::create(2, {});
  board.set_error(0, std::string(10'000, 'x'));
  EXPECT_EQ(board.error(0).find_first_not_of('x'), std::string::npos);
  EXPECT_GT(board.error(0).size(), 4000U);
  EXPECT_EQ(board.error(1), "");
}

TEST(LaunchBoard, IsNotJustAnyFile) {
  EXPECT_THROW((void)LaunchBoard::open(Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC))), std::system_error);
  EXPECT_THROW((void)LaunchBoard::open(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))), std::system_error);
}

}  // namespace
}  // namespace lrun
