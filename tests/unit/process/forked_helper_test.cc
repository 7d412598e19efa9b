#include "process/forked_helper.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/fd.h"
#include "process/fork_child.h"

namespace lrun::inline core {
namespace {

/// Helpers that write to a pipe.
class ForkedHelperTest : public ::testing::Test {
 protected:
  void start(std::function<int()> function) {
    helper.emplace(ForkedHelper::Request{
        .function = std::move(function), .descriptors = {pipe.write.get()}, .name = "test-helper", .of = "a test"});
    pipe.write.reset();
  }
  void say(const std::string& text) const { (void)write_all(pipe.write.get(), text); }
  /// All that it has said, once it has ended.
  std::string said() const {
    std::string text;
    char bytes[256];
    for (ssize_t count = 1; count > 0; text.append(bytes, static_cast<std::size_t>(count))) {
      pollfd ready{pipe.read.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20'000) != 1) return "it did not end";
      count = ::read(pipe.read.get(), bytes, sizeof bytes);
      if (count < 0) return "it cannot be read";
    }
    return text;
  }

  Pipe pipe = make_pipe();
  std::optional<ForkedHelper> helper;
};

TEST_F(ForkedHelperTest, RunsAFunctionUnderItsName) {
  start([this] {
    std::string name;
    std::getline(std::ifstream("/proc/self/comm"), name);
    say(name);
    return 0;
  });
  EXPECT_EQ(said(), "test-helper");
}

TEST_F(ForkedHelperTest, KeepsNoDescriptorButThoseItIsGiven) {
  const Pipe other = make_pipe();
  start([this] {
    for (const int fd : open_descriptors()) say(fd == pipe.write.get() ? "given " : std::to_string(fd) + " ");
    return 0;
  });
  EXPECT_EQ(said(), "0 1 2 given ");
}

TEST_F(ForkedHelperTest, IsSparedTheSignalsOfItsJob) {
  start([this] {
    ::raise(SIGTERM);
    say("goes on");
    return 0;
  });
  EXPECT_EQ(said(), "goes on");
}

TEST_F(ForkedHelperTest, EndsAfterAnException) {
  start([]() -> int { throw std::runtime_error("text"); });
  EXPECT_EQ(said(), "");
}

TEST_F(ForkedHelperTest, EndsWithItsObject) {
  start([] {
    while (true) ::pause();
    return 0;
  });
  EXPECT_NE(helper->pid(), 0);
  helper.reset();
  EXPECT_EQ(said(), "");
}

}  // namespace
}  // namespace lrun::inline core
