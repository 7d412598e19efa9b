#include "inspect/stack_parsers.h"

#include <gtest/gtest.h>

#include <string>

#include "base/process_stat.h"
#include "inspect/system_call.h"

namespace lrun::launcher {
namespace {

using Frames = std::vector<StackFrame>;

TEST(StackParsers, ReadEuStack) {
  EXPECT_EQ(parse_eu_stack("PID 12 - process\nTID 12:\n"
                           "#0  0x00007f3809e29545 clock_nanosleep@GLIBC_2.2.5 - /usr/lib/x86_64-linux-gnu/libc.so.6\n"
                           "#1  0x00000000005d64b4 - /usr/bin/python3.11\n"
                           "#2  0x00007fb19c4a741d std::condition_variable::wait(std::unique_lock<std::mutex>&) - "
                           "/usr/lib/libstdc++.so.6.0.30\n"
                           "#10 0x0000000000627bd1 _start - /opt/a-b/train\n"),
            (Frames{{"clock_nanosleep", "libc.so.6"},
                    {"??", "python3.11"},
                    {"std::condition_variable::wait(std::unique_lock<std::mutex>&)", "libstdc++.so.6.0.30"},
                    {"_start", "train"}}));
}

TEST(StackParsers, ReadGdb) {
  EXPECT_EQ(
      parse_gdb_backtrace(
          "[Thread debugging using libthread_db enabled]\n"
          "0x00007f3809e29545 in __GI___clock_nanosleep (clock_id=...) at ../sysdeps/clock_nanosleep.c:48\n"
          "48\t../sysdeps/clock_nanosleep.c: No such file or directory.\n"
          "#0  0x00007f3809e29545 in __GI___clock_nanosleep (clock_id=..., rem=...) at ../sysdeps/nanosleep.c:48\n"
          "#1  0x00000000005d64b4 in ?? ()\n"
          "#2  step<std::vector<int> > (batch=...) at /src/train.cc:12\n"
          "#3  0x0000000000651770 in (anonymous namespace)::load(int) () from /opt/libload.so\n"
          "#4  main (argc=1, argv=0x7ffe) at train.cc:40\n"
          "[Inferior 1 (process 17012) detached]\n"),
      (Frames{{"__GI___clock_nanosleep", "nanosleep.c:48"},
              {"??", ""},
              {"step<std::vector<int> >", "train.cc:12"},
              {"(anonymous namespace)::load(int)", "libload.so"},
              {"main", "train.cc:40"}}));
}

TEST(StackParsers, ReadPySpyAndPreferTheMainThread) {
  const std::string text =
      "Process 12: python -u train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 13 (idle): \"Worker\"\n    get (queue.py:171)\n"
      "Thread 12 (active): \"MainThread\"\n    all_reduce (torch/distributed/distributed_c10d.py:3075)\n"
      "    <module> (train.py:7)\n";
  EXPECT_EQ(parse_py_spy(text), (Frames{{"all_reduce", "distributed_c10d.py:3075", true}, {"<module>", "train.py:7"}}));
  EXPECT_EQ(parse_py_spy("Thread 13 (idle)\n    get (queue.py:171)\n"), (Frames{{"get", "queue.py:171"}}));
}

TEST(StackParsers, AreBoundedAndTakeAnyBytes) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "#" + std::to_string(i) + "  0x1 f - /lib/x\n";
  EXPECT_EQ(parse_eu_stack(deep).size(), 64U);
  EXPECT_EQ(parse_gdb_backtrace("#0  " + std::string(1'000'000, '(')).front().function.size(), 300U);
  for (const std::string text : {"", "#", "#0", "#0 ", "#0  0x", "#x  f", "    (", "  File \"", "  File \"a\", line ",
                                 "(most recent call first):", "\n\n\n", "    a (b"}) {
    EXPECT_LE(parse_eu_stack(text).size() + parse_gdb_backtrace(text).size() + parse_py_spy(text).size(), 2U) << text;
  }
}

TEST(SystemCall, IsReadFromTheKernelsLine) {
  EXPECT_EQ(parse_system_call("0 0x3 0x7ffd 0x0 0x0 0x0 0x0 0x7ffd3be01cb0 0x7f3809e29545\n"), (SystemCall{0, 3}));
  for (const char* const text : {"running\n", "-1 0x7ffd 0x7f38\n", "", "0", "0 3", "x 0x3"}) {
    EXPECT_FALSE(parse_system_call(text)) << text;
  }
  EXPECT_EQ(system_call_name(99'999), "system call 99999");
}

TEST(ProcessStat, ACommandMayHoldAnything) {
  const auto stat =
      parse_process_stat("17012 (a) b (c) S 16000 17012 17012 0 -1 4194304 1063 0 0 0 2 0 0 0 20 0 3 0 1234 1 2 3\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(*stat, (ProcessStat{"a) b (c", 'S', 16000, 17012, 17012, -1, 2, 0, 3, 0, 1234, 2}));
  for (const char* const text : {"", "17012 (a", "17012 (a)", "17012 (a) ", ")("}) {
    EXPECT_FALSE(parse_process_stat(text)) << text;
  }
}

}  // namespace
}  // namespace lrun::launcher
