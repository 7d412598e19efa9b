#include "runtime/launch/board.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <system_error>

namespace lrun::detail {
namespace {

using Stage = LaunchBoard::Stage;

TEST(LaunchBoard, GivesARankWhatTheLaunchWroteAndBack) {
  LaunchBoard launch = LaunchBoard::create(3, 17);
  LaunchBoard rank = LaunchBoard::open(Fd(::dup(launch.fd())));
  EXPECT_EQ(rank.ranks(), 3);
  EXPECT_EQ(rank.history(), 17);
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
  LaunchBoard board = LaunchBoard::create(2);
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
}  // namespace lrun::detail
