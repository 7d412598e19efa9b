// What programs, their interpreter and liblrun print when they crash.
#include <gtest/gtest.h>

#include "verdict/native_error.h"
#include "verdict/printed_error.h"

namespace lrun {
namespace {

using Lines = std::vector<std::string>;

/// As Python 3.11 and torch 2.11 print it.
const Lines kCrash{
    "Fatal Python error: Segmentation fault",
    "",
    "Thread 0x00007fb9df8ff6c0 (most recent call first):",
    "  File \"/home/me/train.py\", line 3 in worker",
    "  File \"/usr/lib/python3.11/threading.py\", line 975 in run",
    "",
    "Current thread 0x00007fba82917040 (most recent call first):",
    "  File \"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at",
    "  File \"/home/me/train.py\", line 7 in forward",
    "  File \"/venv/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1790 in _call_impl",
    "  File \"/home/me/train.py\", line 10 in <module>",
    "",
    "Extension modules: torch._C, torch._C._dynamo.autograd_compiler (total: 18)",
};

TEST(PrintedError, OfACrashAreLocatedInTheUsersOwnCodeInTheThreadThatCrashed) {
  const PrintedError words = find_printed_error(kCrash, false);
  EXPECT_EQ(words.error, "Fatal Python error: Segmentation fault");
  EXPECT_EQ(words.location, "train.py:7 in forward");
  EXPECT_EQ(words.lines, (Lines{kCrash[0], kCrash[7], kCrash[8]}));
  const Lines without_the_beginning(kCrash.begin() + 3, kCrash.end());
  EXPECT_EQ(find_printed_error(without_the_beginning, false).location, "train.py:7 in forward") << "long stacks";
  Lines lived_on = without_the_beginning;
  lived_on.emplace_back("step 8");
  EXPECT_EQ(find_printed_error(lived_on, false).location, "") << "a dump of a program that went on";
}

TEST(PrintedError, OfACrashInAThreadWithoutPythonAreLocatedWhereTheMainThreadWas) {
  const Lines lines{
      "terminate called after throwing an instance of 'gloo::EnforceNotMet'",
      "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 6",
      "Fatal Python error: Aborted",
      "",
      "Thread 0x00007f56795006c0 (most recent call first):",
      "  File \"/usr/lib/python3.11/threading.py\", line 975 in run",
      "",
      "Thread 0x00007f567954e2c0 (most recent call first):",
      "  File \"/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line 4086 in all_gather",
      "  File \"/home/me/gather.py\", line 5 in <module>",
      "",
      "Extension modules: torch._C (total: 11)",
  };
  const PrintedError words = find_printed_error(lines, false);
  EXPECT_EQ(words.error, "gloo::EnforceNotMet: [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 6");
  EXPECT_EQ(words.location, "gather.py:5");
  const Lines without_the_beginning(lines.begin() + 5, lines.end());
  EXPECT_EQ(find_printed_error(without_the_beginning, false).location, "gather.py:5") << "long stacks";
  for (Lines more : {lines, without_the_beginning}) {
    more.insert(more.end() - 2, "...");
    EXPECT_EQ(find_printed_error(more, false).location, "") << "the main thread is not among the 100 that are shown";
  }
}

TEST(PrintedError, OfACrashNameTheThreadAndSkipWhatIsNoFrame) {
  const PrintedError words = find_printed_error(
      {"Fatal Python error: Aborted", "",  // 3.14
       "Current thread 0x00007f0000000040 [python3] (most recent call first):", "  Garbage-collecting",
       "  File \"/home/me/a.py\", line 3 in step", "", "Current thread's C stack trace (most recent call first):",
       "  Binary file \"/lib/x86_64-linux-gnu/libc.so.6\", at gsignal+0x12"},
      false);
  EXPECT_EQ(words.location, "a.py:3 in step");
  EXPECT_EQ(find_printed_error({"Fatal Python error: Segmentation fault", "",
                                "Current thread 0x00007f (most recent call first):", "  <no Python frame>"},
                               false)
                .location,
            "");
}

TEST(PrintedError, OfAnAbortAreWhatCameBeforeTheInterpretersReport) {
  const PrintedError words = find_printed_error({
      "terminate called after throwing an instance of 'c10::DistBackendError'",
      "  what():  [PG ID 0 PG GUID 0 Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)",
      "Fatal Python error: Aborted",
      "",
      "Current thread 0x00007f5bce77a040 (most recent call first):",
      "  File \"/home/me/train.py\", line 12 in step",
  });
  EXPECT_EQ(words.error.substr(0, 60), "c10::DistBackendError: [PG ID 0 PG GUID 0 Rank 2] Watchdog c");
  EXPECT_EQ(words.location, "train.py:12 in step");
  EXPECT_EQ(words.lines.back(), "  File \"/home/me/train.py\", line 12 in step");
  EXPECT_EQ(find_printed_error({"free(): invalid pointer", "Fatal Python error: Aborted", "",
                                "Thread 0x00007f (most recent call first):", "  File \"a.py\", line 1 in wait", "",
                                "Current thread 0x00007f (most recent call first):", "  File \"a.py\", line 3 in f"}),
            (PrintedError{.error = "free(): invalid pointer",
                          .location = "a.py:3 in f",
                          .lines = {"free(): invalid pointer", "  File \"a.py\", line 3 in f"}}));
}

TEST(PrintedError, OfAFaultAreTheAddressAndTheProgramsOwnCode) {
  const std::string in_library =
      "lrun: SIGSEGV at address 0x10 in /opt/torch/lib/libtorch_cpu.so+0x1234, called from /home/me/train+0x5678";
  EXPECT_EQ(find_printed_error({"step 3", in_library}, false),
            (PrintedError{
                .error = "address 0x10 in libtorch_cpu.so+0x1234", .location = "train+0x5678", .lines = {in_library}}));
  const PrintedError own = find_printed_error({"lrun: SIGILL in /home/me/train+0x5678"}, false);
  EXPECT_EQ(own.error, "");
  EXPECT_EQ(own.location, "train+0x5678");
  EXPECT_FALSE(parse_fault_report("lrun: SIGSEGV at address 0x10"));
  EXPECT_FALSE(parse_fault_report("lrun: note: SIGSEGV in x"));
}

}  // namespace
}  // namespace lrun
