#include "verdict/plain_error.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

using Lines = std::vector<std::string>;

std::string found(const Lines& on_stderr, const Lines& later_on_stdout = {}) {
  Lines all = on_stderr;
  all.insert(all.end(), later_on_stdout.begin(), later_on_stdout.end());
  return find_plain_error(all, on_stderr);
}

TEST(PlainError, IsWhatArgparseSays) {
  EXPECT_EQ(found({"usage: train.py [-h] --lr LR", "train.py: error: the following arguments are required: --lr"}),
            "train.py: error: the following arguments are required: --lr");
}

TEST(PlainError, IsALineThatIsMarkedAsOneNearTheEnd) {
  EXPECT_EQ(found({"loading", "more", "error: could not open 'x.bin'"}), "error: could not open 'x.bin'");
  EXPECT_EQ(found({"loading", "more", "train: fatal: no configuration", "aborting"}), "train: fatal: no configuration");
  EXPECT_EQ(found({"error: one file failed", "a", "b", "c"}), "") << "other things were said after it";
  EXPECT_EQ(found({"a", "an error: was here", "b"}), "") << "in the middle of a sentence it marks nothing";
}

TEST(PlainError, IsWhatShellsAndToolsSay) {
  EXPECT_EQ(found({"ls: cannot access 'x y': No such file or directory"}),
            "ls: cannot access 'x y': No such file or directory");
  EXPECT_EQ(found({"./run.sh: line 3: no-such-command: command not found"}),
            "./run.sh: line 3: no-such-command: command not found");
  EXPECT_EQ(found({"rm: x: Permission denied", "going on"}), "") << "other things were said after it";
  EXPECT_EQ(found({"I was told: No such file or directory"}), "") << "no program's name stands before it";
}

TEST(PlainError, MayHaveALongCallStackBehindIt) {
  Lines lines{"train.js:1", "throw new Error('no data')", "^", "", "Error: no data"};
  lines.insert(lines.end(), 12, "    at load (train.js:1:7)");
  lines.emplace_back("");
  lines.emplace_back("Node.js v20.20.2");
  EXPECT_EQ(found(lines), "Error: no data");
}

TEST(PlainError, IsNotJustTheLastLine) {
  EXPECT_EQ(found({"epoch 1: 30%"}), "") << "a progress bar";
  EXPECT_EQ(found({"a.py:3: UserWarning: this is slow"}), "");
  EXPECT_EQ(found({}), "");
}

TEST(PlainError, IsNothingThatMuchElseFollowed) {
  EXPECT_EQ(found({"error: bad cache"}, {"step 1"}), "error: bad cache") << "stdout may have waited in a buffer";
  EXPECT_EQ(found({"error: bad cache"}, Lines(9, "step")), "");
}

}  // namespace
}  // namespace lrun
