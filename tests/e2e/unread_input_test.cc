// What is piped into lrun and not read: said once, and only where it was meant for lrun.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/fd.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

constexpr const char* kWords = "lrun: warning: nobody reads what is piped into lrun";

/// Standard input of an lrun that nobody but the test writes to.
class InputPipe {
 public:
  InputPipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    read_ = Fd(ends[0]);
    write_ = Fd(ends[1]);
  }

  void write(const std::string& text) const {
    EXPECT_EQ(::write(write_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close() { write_.reset(); }
  [[nodiscard]] LrunProcess::Options options() const {
    return {.before_exec = [fd = read_.get()] { ::dup2(fd, STDIN_FILENO); }};
  }

 private:
  Fd read_;
  Fd write_;
};

std::size_t times_in(const std::string& text, const std::string& words) {
  std::size_t times = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++times;
  return times;
}

TEST(UnreadInput, IsToldOnceWhenDataComes) {
  const InputPipe pipe;
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo ready; exec sleep 1000"}, pipe.options());
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
  ASSERT_TRUE(lrun.wait_for(kWords)) << lrun.err();
  lrun.signal(SIGTERM);
  lrun.wait();
}

/// Services, cron and CI give their programs such a pipe.
TEST(UnreadInput, IsNotToldOfAnEmptyPipe) {
  InputPipe open;
  InputPipe ended;
  ended.close();
  for (const InputPipe* pipe : {&open, &ended}) {
    LrunProcess lrun({"-n", "1", "sh", "-c", "sleep 0.3; read line; echo \"got $line.\""}, pipe->options());
    EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
    EXPECT_NE(lrun.out().find("got ."), std::string::npos) << lrun.out();
    EXPECT_EQ(lrun.err(), "");
  }
}

TEST(UnreadInput, IsNotToldWhereRankZeroReadsIt) {
  InputPipe pipe;
  pipe.write("data\n");
  pipe.close();
  LrunProcess lrun({"-n", "2", "--stdin", "sh", "-c", "read line; sleep 0.3; echo \"got $line.\""}, pipe.options());
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
  EXPECT_EQ(shell.wait().code, 0) << shell.err();
  EXPECT_EQ(shell.out(), "ran a\nran b\n");
  EXPECT_EQ(shell.err(), "");
}

}  // namespace
}  // namespace lrun::test
