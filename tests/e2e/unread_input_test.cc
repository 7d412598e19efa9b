// Input from a pipe that is not read: lrun reports it once, and only where it was meant for lrun.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "base/fd.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

constexpr const char* kWords = "lrun: warning: standard input is ignored";

/// Standard input of an lrun that nobody but the test writes to.
class InputPipe {
 public:
  InputPipe() {
    make(read_, write_);
    make(gate_, gate_writer_);
  }

  void write(const std::string& text) const {
    EXPECT_EQ(::write(write_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close() { write_.reset(); }
  /// As a shell does it, which keeps no end for itself. Until then lrun does not begin.
  void pass_on() {
    read_.reset();
    gate_writer_.reset();
  }
  [[nodiscard]] LrunProcess::Options options() const {
    return {.before_exec = [fd = read_.get(), gate = gate_.get(), writer = gate_writer_.get()] {
      ::dup2(fd, STDIN_FILENO);
      ::close(writer);
      char byte = 0;
      while (::read(gate, &byte, 1) < 0 && errno == EINTR) continue;
    }};
  }

 private:
  static void make(Fd& read, Fd& write) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }

  Fd read_;
  Fd write_;
  Fd gate_;
  Fd gate_writer_;
};

std::size_t times_in(const std::string& text, const std::string& words) {
  std::size_t times = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++times;
  return times;
}

TEST(UnreadInput, IsToldOnceWhenDataComes) {
  InputPipe pipe;
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo ready; exec sleep 1000"}, pipe.options());
  pipe.pass_on();
  ASSERT_TRUE(lrun.wait_for("ready")) << lrun.err();
  EXPECT_EQ(times_in(lrun.err(), kWords), 0U) << lrun.err();
  pipe.write("data\n");
  ASSERT_TRUE(lrun.wait_for(kWords)) << lrun.err();
  pipe.write("more\n");
  lrun.signal(SIGTERM);
  lrun.wait();
  EXPECT_EQ(times_in(lrun.err(), kWords), 1U) << lrun.err();
}

TEST(UnreadInput, IsToldOfWhatWasThereBefore) {
  InputPipe pipe;
  pipe.write("data\n");
  pipe.close();
  LrunProcess lrun({"-n", "1", "sleep", "1000"}, pipe.options());
  pipe.pass_on();
  ASSERT_TRUE(lrun.wait_for(kWords)) << lrun.err();
  lrun.signal(SIGTERM);
  lrun.wait();
}

/// Services, cron and CI give their programs such a pipe.
TEST(UnreadInput, IsNotToldOfAnEmptyPipe) {
  InputPipe open;
  InputPipe ended;
  ended.close();
  for (InputPipe* pipe : {&open, &ended}) {
    LrunProcess lrun({"-n", "1", "sh", "-c", "sleep 0.3; read line; echo \"got $line.\""}, pipe->options());
    pipe->pass_on();
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
    EXPECT_NE(lrun.out().find("got ."), std::string::npos) << lrun.out();
    EXPECT_EQ(lrun.err(), "");
  }
}

/// srun gives every task of a step what is typed at its terminal.
TEST(UnreadInput, IsNotToldOfWhatSlurmBroadcasts) {
  char name[16] = {};
  ASSERT_EQ(::prctl(PR_GET_NAME, name), 0);
  ASSERT_EQ(::prctl(PR_SET_NAME, "slurmstepd"), 0);
  InputPipe pipe;
  pipe.write("typed\n");
  LrunProcess lrun({"-n", "1", "sleep", "0.3"}, pipe.options());
  pipe.pass_on();
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.err(), "");
  EXPECT_EQ(::prctl(PR_SET_NAME, name), 0);
}

TEST(UnreadInput, IsNotToldWhereRankZeroReadsIt) {
  InputPipe pipe;
  pipe.write("data\n");
  pipe.close();
  LrunProcess lrun({"-n", "2", "--stdin", "sh", "-c", "read line; sleep 0.3; echo \"got $line.\""}, pipe.options());
  pipe.pass_on();
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.out().find("got data."), std::string::npos) << lrun.out();
  EXPECT_EQ(lrun.err(), "");
}

/// A shell that reads a list of what to run through a pipe: what is left in it is the shell's.
TEST(UnreadInput, IsNotToldWhereAShellReadsThePipe) {
  InputPipe pipe;
  pipe.write("a\nb\n");
  pipe.close();
  LrunProcess shell({"--stdin", "--output=raw", "sh", "-c",
                     "while read -r name; do " LRUN_PROGRAM " --output=raw sh -c \"sleep 0.3; echo ran $name\"; done"},
                    pipe.options());
  pipe.pass_on();
  EXPECT_EQ(shell.wait().code, 0) << shell.err();
  EXPECT_EQ(shell.out(), "ran a\nran b\n");
  EXPECT_EQ(shell.err(), "");
}

/// fish keeps the pipe of a loop on another descriptor than its standard input.
TEST(UnreadInput, IsNotToldWhereItsStarterReadsThePipeElsewhere) {
  InputPipe pipe;
  pipe.write("a\n");
  pipe.close();
  LrunProcess shell({"--stdin", "--output=raw", "bash", "-c",
                     "exec 7<&0 </dev/null; " LRUN_PROGRAM
                     " --output=raw sh -c 'sleep 0.3; echo ran' <&7; read -r line <&7; echo $line"},
                    pipe.options());
  pipe.pass_on();
  EXPECT_EQ(shell.wait().code, 0) << shell.err();
  EXPECT_EQ(shell.out(), "ran\na\n");
  EXPECT_EQ(shell.err(), "");
}

/// 'setsid -f lrun …' of a shell that reads the pipe: whose it is, is not known any more.
TEST(UnreadInput, IsNotToldWhereItsStarterHasGone) {
  InputPipe pipe;
  pipe.write("a\n");
  pipe.close();
  LrunProcess::Options options = pipe.options();
  options.program = "/bin/bash";
  LrunProcess shell({"-c", "setsid -f " LRUN_PROGRAM " --output=raw sleep 0.3 2>&1 | cat; echo ended"}, options);
  pipe.pass_on();
  EXPECT_EQ(shell.wait().code, 0) << shell.err();
  EXPECT_EQ(shell.out(), "ended\n");
  EXPECT_EQ(shell.err(), "");
}

}  // namespace
}  // namespace lrun::test
