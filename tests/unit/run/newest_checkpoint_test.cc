#include "run/newest_checkpoint.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/temporary_folder.h"

namespace lrun::launcher {
namespace {

namespace fs = std::filesystem;

class NewestCheckpoint : public ::testing::Test {
 protected:
  /// Of this time, in seconds since 1970.
  void write(const std::string& name, std::int64_t time, const std::string& text = "weights") {
    fs::create_directories((folder_ / name).parent_path());
    (void)folder_.script(name, text, false);
    set_time(name, time);
  }

  void set_time(const std::string& name, std::int64_t time) {
    const timespec both[] = {{time, 0}, {time, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / name).c_str(), both, 0), 0) << name;
  }

  [[nodiscard]] std::int64_t seconds_of(const std::string& pattern) const {
    return newest_checkpoint_ns((folder_ / pattern).string(), {}) / 1'000'000'000;
  }

  test::TemporaryFolder folder_;
};

TEST_F(NewestCheckpoint, IsOfAFileAFolderOrAPattern) {
  write("state.pt", 100);
  write("runs/a/step_1", 200);
  write("runs/b/step_2/part_0", 300);
  write("runs/b/log", 400);
  EXPECT_EQ(seconds_of("state.pt"), 100);
  EXPECT_EQ(seconds_of("runs"), 400);
  EXPECT_EQ(seconds_of("runs/*/step_*"), 300);
  EXPECT_EQ(seconds_of("runs/a"), 200);
  EXPECT_EQ(seconds_of("runs/*/none"), 0);
  EXPECT_EQ(seconds_of("none"), 0);
}

TEST_F(NewestCheckpoint, MayHaveANameThatLooksLikeAPattern) {
  write("run[1]/state.pt", 100);
  EXPECT_EQ(seconds_of("run[1]"), 100);
}

TEST_F(NewestCheckpoint, IsComplete) {
  write("all/step_1", 100);
  for (const char* const name :
       {"step_2.tmp", "step_2.pt.new", "step_2.part", "step_2~", ".step_2", "step_2.ckpt.TMP-0", "tmp-step-2/part_0"}) {
    write("all/" + std::string(name), 200);
  }
  write("all/step_3", 300, "");
  EXPECT_EQ(seconds_of("all"), 100);
  EXPECT_EQ(seconds_of("all/step_*"), 100);
}

TEST_F(NewestCheckpoint, IsHiddenWhereThePatternSaysSo) {
  write("step_1/part_0", 100);
  write("step_1/.metadata", 110);
  write("step_2/part_0", 200);
  EXPECT_EQ(seconds_of("step_*"), 200);
  EXPECT_EQ(seconds_of("step_*/.metadata"), 110);
}

TEST_F(NewestCheckpoint, HasATimeThatAClockMayShow) {
  write("state", 100);
  for (const std::int64_t time : {std::int64_t{-5}, std::int64_t{2'500'000'000}, std::int64_t{10'413'792'000}}) {
    write("of_another_time", time);
    EXPECT_EQ(seconds_of("*"), 100) << time;
  }
}

TEST_F(NewestCheckpoint, IsNothingThatIsLeftOut) {
  write("run/step_1", 100);
  write("run/20261129-1200/attempt_1/0/stdout.log", 200);
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "run/20261129-1200").c_str(), &status), 0);
  for (const char* const pattern : {"run", "*"}) {
    const std::int64_t newest = newest_checkpoint_ns((folder_ / pattern).string(), {{status.st_dev, status.st_ino}});
    EXPECT_EQ(newest / 1'000'000'000, 100) << pattern;
  }
}

TEST_F(NewestCheckpoint, IsFoundBesideWhatCannotBeRead) {
  write("all/a/step_1", 100);
  write("all/b/step_2", 200);
  write("all/c/step_3", 300);
  ASSERT_EQ(::chmod((folder_ / "all/b").c_str(), 0), 0);
  EXPECT_EQ(seconds_of("all"), 300);
  ASSERT_EQ(::chmod((folder_ / "all/b").c_str(), 0700), 0);
}

TEST_F(NewestCheckpoint, OnDiskAndInMemoryHaveATimeEach) {
  write("all/step_1", 100);
  write("memory/state", 200);
  const auto found = [&](const std::string& pattern, const std::string& memory) {
    return checkpoints_from({ChildAnswer::End::kAnswered, look_for_checkpoints(pattern, {}, memory)});
  };
  const std::string all = (folder_ / "all").string();
  const std::string memory = (folder_ / "memory").string();
  constexpr std::int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(found(all, memory), (NewestCheckpoints{100 * kSecond, 200 * kSecond}));
  EXPECT_EQ(found(all, ""), (NewestCheckpoints{100 * kSecond, 0}));
  EXPECT_EQ(found("", memory), (NewestCheckpoints{0, 200 * kSecond}));
  EXPECT_EQ(found("", ""), NewestCheckpoints{});
}

TEST_F(NewestCheckpoint, IsNotKnownOfAChildWithoutAnAnswer) {
  EXPECT_EQ(checkpoints_from({ChildAnswer::End::kTimedOut, "1 2"}), NewestCheckpoints{});
  EXPECT_EQ(checkpoints_from({ChildAnswer::End::kAnswered, ""}), NewestCheckpoints{});
  EXPECT_EQ(checkpoints_from({ChildAnswer::End::kAnswered, "x 7"}), (NewestCheckpoints{0, 7}));
}

TEST_F(NewestCheckpoint, IsFoundThroughLinksThatMayLeadInCircles) {
  write("scratch/a/b/c/d/e/step_7", 700);
  write("all/step_1", 100);
  fs::create_symlink("scratch/a/b/c/d/e/step_7", folder_ / "latest");
  fs::create_directory_symlink("..", folder_ / "all/loop");
  fs::create_directory_symlink("../scratch", folder_ / "all/here");
  EXPECT_EQ(seconds_of("latest"), 700);
  EXPECT_EQ(seconds_of("all"), 700);
}

}  // namespace
}  // namespace lrun::launcher
