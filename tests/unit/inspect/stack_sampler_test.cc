#include "inspect/stack_sampler.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "inspect/process_look.h"

namespace lrun::launcher {
namespace {

/// A child that sleeps, and a folder for programs that stand in for the tools.
class StackSamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "lrun-tools-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
      while (true) ::pause();
    }
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  void tool(const std::string& name, const std::string& script) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }

  /// With tools alone.
  [[nodiscard]] std::vector<StackSample> sample(const std::vector<RankProcess>& processes,
                                                StackSampler::Limits limits = {}) const {
    limits.reads_natives = false;
    return look(processes, limits);
  }
  [[nodiscard]] std::vector<StackSample> look(const std::vector<RankProcess>& processes,
                                              StackSampler::Limits limits = {}) const {
    EventLoop loop;
    std::vector<StackSample> samples;
    StackSampler sampler(loop, find_stack_tools(folder_.string()), processes, limits,
                         [&](std::vector<StackSample> all) {
                           samples = std::move(all);
                           loop.stop();
                         });
    loop.run();
    return samples;
  }

  std::filesystem::path folder_;
  pid_t child_ = -1;
};

TEST_F(StackSamplerTest, AsksTheToolForEveryProcess) {
  tool("eu-stack", "echo \"#0  0x1 inside$6 - /lib/x.so\"\n");
  const std::vector<StackSample> samples = sample({{0, child_}, {1, 0}, {2, child_}});
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].native, (std::vector<StackFrame>{{"inside" + std::to_string(child_), "x.so"}}));
  EXPECT_EQ(samples[0].rank, 0);
  EXPECT_EQ(samples[1].state, 0) << "there is no such process";
  EXPECT_EQ(samples[2].native, samples[0].native);
  EXPECT_TRUE(samples[0].problems.empty() && samples[1].problems.empty());
}

/// A shell's loop over short commands, of which one ends during many a look.
TEST_F(StackSamplerTest, SeesARankWhoseCommandEndsMeanwhile) {
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
      const pid_t command = ::fork();
      if (command < 0) ::_exit(1);
      if (command == 0) {
        ::usleep(1000);
        ::_exit(0);
      }
      ::waitpid(command, nullptr, 0);
    }
  }
  int ended = 0;
  for (int look = 0; look < 1000; ++look) ended += sample({{0, shell}}).at(0).has_ended() ? 1 : 0;
  ::kill(shell, SIGKILL);
  ::waitpid(shell, nullptr, 0);
  EXPECT_EQ(ended, 0);
}

/// A child with an interpreter in it, as far as its name tells: one that only py-spy knows.
class StackSamplerOfPython : public StackSamplerTest {
 protected:
  void SetUp() override {
    StackSamplerTest::SetUp();
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    const std::string program = folder_ / "python3";
    std::filesystem::copy_file("/bin/sleep", program);
    child_ = ::fork();
    if (child_ == 0) ::execl(program.c_str(), program.c_str(), "1000", nullptr);
    for (std::error_code error;
         std::filesystem::read_symlink("/proc/" + std::to_string(child_) + "/exe", error) != program;) {
    }
  }
  [[nodiscard]] std::string asked() const {
    std::ifstream file(folder_ / "asked");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

constexpr const char* kNoCPython = "no Python stack: no CPython of version 3.9 or later was found in it";

TEST_F(StackSamplerOfPython, AsksForPythonsStackFirstAndWhereItIsEnoughForNoOther) {
  tool("py-spy",
       "echo py-spy >> ${0%/*}/asked; echo 'Thread 1 (idle): \"MainThread\"'; echo '    step (train.py:12)'\n");
  tool("eu-stack", "echo eu-stack >> ${0%/*}/asked; echo '#0  0x1 f - x'\n");
  StackSample sampled = sample({{0, child_}}).at(0);
  EXPECT_EQ(sampled.python, (std::vector<StackFrame>{{"step", "train.py:12"}}));
  EXPECT_TRUE(sampled.problems.empty());
  EXPECT_FALSE(sampled.native.empty());
  EXPECT_EQ(asked(), "py-spy\neu-stack\n") << "a debugger that has to be ended may leave the process stopped";
  sampled = sample({{0, child_}}, {.native_too = false}).at(0);
  EXPECT_TRUE(sampled.native.empty());
  EXPECT_EQ(asked(), "py-spy\neu-stack\npy-spy\n");
}

TEST_F(StackSamplerOfPython, SaysWhyItsStackCannotBeRead) {
  tool("eu-stack", "echo '#0  0x1 f - x'\n");
  EXPECT_EQ(sample({{0, child_}}).at(0).problems, (std::vector<std::string>{kNoCPython}));
  tool("py-spy", "echo 'Error: unknown version' >&2; exit 1\n");
  EXPECT_EQ(sample({{0, child_}}).at(0).problems,
            (std::vector<std::string>{kNoCPython, "py-spy: Error: unknown version"}));
}

TEST_F(StackSamplerTest, EndsAToolThatTakesTooLong) {
  tool("eu-stack", "trap '' TERM; exec 1>&- 2>&-; while :; do sleep 1; done\n");
  const std::vector<StackSample> samples = sample({{0, child_}}, {.tool = Duration(20)});
  EXPECT_EQ(samples.at(0).problems, (std::vector<std::string>{"eu-stack took longer than 20ms"}));
}

TEST_F(StackSamplerTest, NamesAFasterToolThanGdb) {
  tool("gdb", "exec sleep 1000\n");
  const std::vector<StackSample> samples = sample({{0, child_}}, {.tool = Duration(20)});
  EXPECT_EQ(samples.at(0).problems,
            (std::vector<std::string>{
                "gdb took longer than 20ms; eu-stack (package elfutils) is faster with large libraries"}));
}

TEST_F(StackSamplerTest, PassesOnWhyAToolFailed) {
  tool("eu-stack", "echo 'cannot attach: some reason' >&2; exit 2\n");
  const std::vector<StackSample> samples = sample({{0, child_}});
  EXPECT_EQ(samples.at(0).problems, (std::vector<std::string>{"eu-stack: cannot attach: some reason"}));
}

TEST_F(StackSamplerTest, StopsNothingWhereItMustNot) {
  const std::vector<StackSample> samples = sample({{0, child_}});
  EXPECT_NE(samples.at(0).state, 0);
  EXPECT_EQ(samples.at(0).problems, (std::vector<std::string>{"no native stack: nothing is stopped for this look"}));
}

#if defined(__x86_64__)

TEST_F(StackSamplerTest, NeedsNoTools) {
  tool("eu-stack", "echo '#0  0x1 f - x'\n");
  while (look_at_process(child_).state != 'S') ::usleep(1000);
  const std::vector<StackSample> samples = look({{0, child_}, {1, 0}});
  ASSERT_GT(samples.at(0).native.size(), 2U);
  EXPECT_EQ(samples.at(0).native.at(0).function, "pause");
  EXPECT_TRUE(samples.at(0).problems.empty()) << samples.at(0).problems.at(0);
}

/// One look may not keep what the next one needs.
TEST_F(StackSamplerTest, HasDescriptorsForManyProcesses) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{48, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const std::vector<StackSample> samples = look(std::vector<RankProcess>(100, {0, child_}), {.at_once = 1});
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_EQ(samples.size(), 100U);
  for (const StackSample& sample : samples) {
    EXPECT_EQ(sample.native.size(), samples.front().native.size());
    EXPECT_TRUE(sample.problems.empty()) << sample.problems.at(0);
  }
}

#endif

TEST_F(StackSamplerTest, LetsGoOnWhatAToolLeftStopped) {
  tool("eu-stack", "kill -s STOP $6; until grep -q '^State:.T' /proc/$6/status; do :; done; echo '#0  0x1 f - x'\n");
  EXPECT_EQ(sample({{0, child_}}).size(), 1U);
  int status = 0;
  while (::waitpid(child_, &status, WUNTRACED | WCONTINUED) == child_ && !WIFCONTINUED(status)) {
  }
  EXPECT_TRUE(WIFCONTINUED(status));
}

TEST_F(StackSamplerTest, GivesUpWhenNoTimeIsLeft) {
  tool("eu-stack", "echo '#0  0x1 f - x'\n");
  const std::vector<StackSample> samples = sample({{0, child_}}, {.all = Duration::zero()});
  EXPECT_EQ(samples.at(0).problems, (std::vector<std::string>{"no time was left for its stack"}));
}

}  // namespace
}  // namespace lrun::launcher
