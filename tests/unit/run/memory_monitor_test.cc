#include "run/memory_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "support/log_test_support.h"
#include "support/recording_sink.h"
#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class MemoryMonitorTest : public ::testing::Test {
 protected:
  void watch(std::uint64_t bytes) {
    monitor_.emplace(loop_, folder_, Setting<MemoryLimit>{{bytes}, Source::kFlag, "--memory-dir"}, sink_);
  }
  [[nodiscard]] fs::path place(const std::string& name) const { return fs::path(folder_.path()) / name; }
  void save(const std::string& name, std::size_t bytes) const { std::ofstream(place(name)) << std::string(bytes, 'x'); }
  /// Runs the loop until there are so many messages.
  void wait_for_messages(std::size_t count) {
    sink_.printed = [this, count](const std::string&) {
      if (sink_.entries.size() >= count) loop_.stop();
    };
    const TimeLimit limit(loop_);
    while (sink_.entries.size() < count && !limit.expired()) loop_.run();
  }

  EventLoop loop_;
  TemporaryFolder parent_;
  MemoryFolder folder_ = MemoryFolder::make("run", parent_.path().string());
  RecordingSink sink_;
  std::optional<MemoryMonitor> monitor_;
};

TEST_F(MemoryMonitorTest, WarnsOfFilesThatExceedTheLimitWhereverTheyAre) {
  watch(100'000);
  fs::create_directories(place("a/b"));
  save("a/b/state", 200'000);
  wait_for_messages(2);
  EXPECT_THAT(sink_.text(), AllOf(HasSubstr("warning: the workers keep "),
                                  HasSubstr("in '" + folder_.path() + "', more than 97.7 KiB\n"), HasSubstr("hint: "),
                                  HasSubstr("'--memory-dir 1G'")));
}

TEST_F(MemoryMonitorTest, LearnsOfLaterFilesInInnerFolders) {
  watch(1'000'000);
  fs::create_directory(place("inner"));
  save("inner/small", 1000);
  const EventLoop::Timer later = loop_.after(Duration(1500), [this] { save("inner/large", 2'000'000); });
  wait_for_messages(2);
  EXPECT_THAT(sink_.text(), HasSubstr("1.9 MiB in '"));
}

TEST_F(MemoryMonitorTest, SeesAFileThatGrows) {
  watch(100'000);
  std::ofstream growing(place("state"));
  growing << std::flush;
  const EventLoop::Timer later =
      loop_.after(Duration(1500), [&growing] { growing << std::string(200'000, 'x') << std::flush; });
  wait_for_messages(2);
  EXPECT_THAT(sink_.text(), HasSubstr("more than 97.7 KiB"));
}

TEST_F(MemoryMonitorTest, WarnsOnce) {
  watch(100'000);
  save("state", 200'000);
  wait_for_messages(2);
  fs::remove(place("state"));
  save("state", 300'000);
  loop_.run();
  EXPECT_EQ(sink_.entries.size(), 2U) << "and the loop had nothing more to wait for";
}

TEST_F(MemoryMonitorTest, SeesAFolderThatWorkersHaveMadeAnew) {
  watch(100'000);
  fs::remove(folder_.path());
  fs::create_directory(folder_.path());
  const EventLoop::Timer later = loop_.after(Duration(1500), [this] { save("state", 200'000); });
  wait_for_messages(2);
  EXPECT_THAT(sink_.text(), HasSubstr("more than 97.7 KiB"));
}

TEST_F(MemoryMonitorTest, CountsALinkedFileOnce) {
  watch(300'000);
  save("state", 200'000);
  fs::create_hard_link(place("state"), place("same"));
  const EventLoop::Timer later = loop_.after(Duration(1500), [this] { save("more", 200'000); });
  wait_for_messages(2);
  EXPECT_THAT(sink_.entries.front().text, HasSubstr("keep 39")) << "KiB, of two files";
}

TEST_F(MemoryMonitorTest, WatchesNothingWithoutALimit) {
  watch(ResourceLimit::kUnlimited);
  save("state", 200'000);
  loop_.run();
  EXPECT_EQ(sink_.text(), "") << "and the loop had nothing to wait for";
}

TEST_F(MemoryMonitorTest, WatchesNothingWhereThereIsNoFolder) {
  const MemoryFolder none;
  MemoryMonitor monitor(loop_, none, {}, sink_);
  loop_.run();
  EXPECT_EQ(sink_.text(), "") << "and the loop had nothing to wait for";
}

}  // namespace
}  // namespace lrun::launcher
