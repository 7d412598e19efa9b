#include "verdict/plain_error.h"

#include <gtest/gtest.h>

namespace lrun {
namespace {

using Lines = std::vector<std::string>;

std::string found(const Lines& on_stderr, const Lines& later_on_stdout = {}) {
  Lines all = on_stderr;
  all.insert(all.end(), later_on_stdout.begin(), later_on_stdout.end());
  return find_plain_error(all, on_stderr, false);
}

/// Of a program that exits with the code of those that say why.
std::string found_unmarked(const Lines& on_stderr, const Lines& later_on_stdout = {}) {
  Lines all = on_stderr;
  all.insert(all.end(), later_on_stdout.begin(), later_on_stdout.end());
  return find_plain_error(all, on_stderr, true);
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
  EXPECT_EQ(found({"run.sh: line 3: syntax error near unexpected token `fi'", "run.sh: line 3: `fi'"}),
            "run.sh: line 3: syntax error near unexpected token `fi'");
  EXPECT_EQ(found({"run.sh: 1: Syntax error: \"(\" unexpected"}), "run.sh: 1: Syntax error: \"(\" unexpected");
  EXPECT_EQ(found({"sh: 0: cannot open run.sh: No such file"}), "sh: 0: cannot open run.sh: No such file");
  EXPECT_EQ(found({"rm: x: Permission denied", "going on"}), "") << "other things were said after it";
  EXPECT_EQ(found({"I was told: No such file or directory"}), "") << "no program's name stands before it";
}

TEST(PlainError, IsWhatMakeSaysWhereTheRecipeSaidNothing) {
  EXPECT_EQ(found({"make: *** [Makefile:2: all] Error 3"}), "make: *** [Makefile:2: all] Error 3");
  EXPECT_EQ(found({"make: *** No rule to make target 'x'.  Stop."}), "make: *** No rule to make target 'x'.  Stop.");
  EXPECT_EQ(found({"make[1]: *** [Makefile:7: step] Error 3", "make: *** [Makefile:2: all] Error 2"}),
            "make[1]: *** [Makefile:7: step] Error 3")
      << "the others say that the innermost has failed";
  EXPECT_EQ(found({"train: error: no data", "make[1]: *** [Makefile:7: step] Error 1",
                   "make: *** [Makefile:2: all] Error 2"}),
            "train: error: no data");
  EXPECT_EQ(found_unmarked({"no data for this rank", "make: *** [Makefile:2: all] Error 1"}), "no data for this rank");
  EXPECT_EQ(found({"make: *** [Makefile:2: all] Error 1 (ignored)", "1", "2", "3", "4", "5", "6", "7", "8", "9"}), "")
      << "other things were said after it";
  EXPECT_EQ(found({"it: was *** bad"}), "");
  for (const char* const name : {"gmake", "mingw32-make[12]", "/usr/bin/make", "../bin/gmake[3]"}) {
    const std::string line = std::string(name) + ": *** [Makefile:2: all] Error 3";
    EXPECT_EQ(found({line}), line);
  }
  for (const char* const name : {"INFO", "cmake", "make[", "make]", "make[]", "make[x]", "make/", "[1]", "]"}) {
    EXPECT_EQ(found({std::string(name) + ": *** starting training ***"}), "") << name << " is not make";
  }
}

TEST(PlainError, IsWhatMakeSaysLastWhereManyMakesSpeak) {
  Lines lines{"make[9]: *** [Makefile:3: early] Error 1"};
  for (int level = 8; level > 0; --level) {
    lines.push_back("make[" + std::to_string(level) + "]: *** [Makefile:7: step] Error 2");
    lines.push_back("make[" + std::to_string(level) + "]: *** Waiting for unfinished jobs....");
  }
  const std::string error = found(lines);
  EXPECT_TRUE(error.starts_with("make[4]: *** ")) << error << ": the first that is near the end";
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

TEST(PlainError, IsWhatPerlAndLoggersSay) {
  EXPECT_EQ(found({"no data for rank 1 at train.pl line 3."}), "no data for rank 1 at train.pl line 3.");
  EXPECT_EQ(found({"wait at the line 3"}), "");
  EXPECT_EQ(found({"ERROR:root:no data"}), "ERROR:root:no data");
}

TEST(PlainError, IsTheLastLineWhereTheCodeIsThatOfOneWhoSaysWhy) {
  EXPECT_EQ(found({"cannot read shard 3"}), "");
  EXPECT_EQ(found_unmarked({"cannot read shard 3"}), "cannot read shard 3");
  EXPECT_EQ(found_unmarked({"loading", "2026/11/22 13:00:00 no data"}, {"step 1"}), "2026/11/22 13:00:00 no data");
  EXPECT_EQ(found_unmarked({"error: bad cache", "giving up"}), "error: bad cache") << "what is marked comes first";
  EXPECT_EQ(found_unmarked({"TypeError: x is not a function", "    at load (a.js:1:7)", "", "Node.js v20.20.2"}),
            "TypeError: x is not a function");
  EXPECT_EQ(found_unmarked({"no data", "[rank0]:[W1122 13:00:00.1 ProcessGroup.cpp:1] Warning: not destroyed"}),
            "no data");
  EXPECT_EQ(found_unmarked({"no data"}, Lines(9, "step")), "") << "much else followed";
}

TEST(PlainError, IsNoLineOfALog) {
  EXPECT_EQ(found_unmarked({"epoch 1: 30%"}), "");
  EXPECT_EQ(found_unmarked({"a.py:3: UserWarning: this is slow"}), "");
  EXPECT_EQ(found_unmarked({"INFO:root:epoch 3"}), "");
  EXPECT_EQ(found_unmarked({"step 1 loss 0.5", "step 2 loss 0.4"}), "");
  EXPECT_EQ(found_unmarked({"+ exit 1"}), "");
  EXPECT_EQ(found_unmarked({"========"}), "");
  EXPECT_EQ(found_unmarked({}), "");
}

TEST(PlainError, IsNothingThatMuchElseFollowed) {
  EXPECT_EQ(found({"error: bad cache"}, {"step 1"}), "error: bad cache") << "stdout may have waited in a buffer";
  EXPECT_EQ(found({"error: bad cache"}, Lines(9, "step")), "");
}

}  // namespace
}  // namespace lrun
