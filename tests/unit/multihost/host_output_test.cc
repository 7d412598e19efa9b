#include "multihost/host_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/log_test_support.h"

namespace lrun::launcher {
namespace {

using ::testing::ElementsAre;

class HostOutputTest : public ::testing::Test {
 protected:
  IgnoreBrokenPipes ignore_;
  EventLoop loop;
  Pipe out_pipe_ = make_pipe();
  Pipe err_pipe_ = make_pipe();
  Fd out_end_ = std::move(out_pipe_.write);
  Fd err_end_ = std::move(err_pipe_.write);
  Reader out{loop, std::move(out_pipe_.read)};
  Reader err{loop, std::move(err_pipe_.read)};
  HostOutput output{
      loop, 2, {.console_bytes = 10'000, .stdout_fd = out_end_.get(), .stderr_fd = err_end_.get()}, false};
};

TEST_F(HostOutputTest, LinesOfHostsStayWhole) {
  output.show(0, kOut, "a be");
  output.show(1, kOut, "b whole\n");
  output.show(0, kOut, "gins\n");
  EXPECT_EQ(out.take(), "b whole\na begins\n");
}

TEST_F(HostOutputTest, ALineWithoutItsEndIsShownSoon) {
  output.show(0, kErr, "Password: ");
  EXPECT_EQ(err.take(), "");
  err.read_until_it_says("Password: ");
}

TEST_F(HostOutputTest, MessagesOfLrunGoToStderr) {
  output.warn("careful");
  output.print_of_job("a line");
  EXPECT_EQ(err.take(), "lrun: warning: careful\na line");
  EXPECT_EQ(out.take(), "");
}

TEST_F(HostOutputTest, AFullConsoleIsToldAndItsReliefToo) {
  std::vector<bool> changes;
  output.set_events({.filled =
                         [&](bool full) {
                           changes.push_back(full);
                           loop.stop();
                         },
                     .closed = {}});
  output.show(0, kOut, std::string(200'000, 'x') + "\n");
  EXPECT_TRUE(output.full());
  out.read_until([&](const std::string&) { return changes.size() == 2; });
  EXPECT_THAT(changes, ElementsAre(true, false));
}

TEST_F(HostOutputTest, AClosedStdoutIsToldOnce) {
  int closed = 0;
  output.set_events({.filled = [](bool) {}, .closed = [&] { ++closed; }});
  out.close();
  output.show(0, kOut, "x\n");
  output.show(0, kOut, "y\n");
  EXPECT_EQ(closed, 1);
}

}  // namespace
}  // namespace lrun::launcher
