// How lrun starts on hosts that the user names. A script takes ssh's part: all of them are this machine.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/temporary_folder.h"
#include "support/words.h"

namespace lrun::test {
namespace {

namespace fs = std::filesystem;

/// The end of its input comes early where PART is set: that many bytes are all. Where NO_GLIBC is set, the shell does
/// not start the copy, as where the loader that it names is missing.
constexpr const char* kFakeSsh = R"sh(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
export SSH_CONNECTION="127.0.0.1 40000 127.0.0.1 22" TMPDIR="$HOST_TMPDIR"
[ -z "$NO_GLIBC" ] || set -- . "$(printf %s "$2" | sed 's|; "$d/lrun" |; "$d/no_glibc" |')"
[ -n "$PART" ] || exec sh -c "$2"
head -c "$PART" | sh -c "$2"
)sh";

std::string line_with(const std::string& text, const std::string& part) {
  const auto at = text.find(part);
  return at == std::string::npos ? "nothing in: " + text : text.substr(at, text.find('\n', at) - at);
}

class HostsStart : public testing::Test {
 protected:
  HostsStart() {
    std::ofstream(path("ssh")) << kFakeSsh;
    ::chmod(path("ssh").c_str(), 0755);
    fs::create_directories(path("my dir"));
    fs::create_directories(path("my"));
    std::ofstream(path("my/file")) << "a neighbour's";
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  [[nodiscard]] LrunProcess::Options options() const {
    return {.environment = {{"LRUN_SSH", path("ssh")}, {"HOST_TMPDIR", path("my dir")}}};
  }

  TemporaryFolder folder_;
};

TEST_F(HostsStart, ACopyLeavesNothingAndHarmsNothingWhereverItIs) {
  LrunProcess lrun({"--copy", "-H", "a:1,b:1", "sh", "-c", "echo $RANK/$WORLD_SIZE"}, options());
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(contains(lrun.out(), "[0] 0/2\n") && contains(lrun.out(), "[1] 1/2\n")) << lrun.out() << lrun.err();
  EXPECT_TRUE(eventually([&] { return fs::is_empty(path("my dir")); })) << "the copies are still there";
  EXPECT_TRUE(fs::exists(path("my/file"))) << "what is beside it is gone";
}

TEST_F(HostsStart, HalfACopyIsNotExecuted) {
  LrunProcess::Options in_part = options();
  in_part.environment["PART"] = "40000";
  LrunProcess lrun({"--copy", "-H", "a:1", "true"}, in_part);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "the copy of lrun in '" + path("my dir") + "/tmp.")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "' is not whole\n")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "hint: set TMPDIR on that host")) << lrun.err();
  EXPECT_TRUE(eventually([&] { return fs::is_empty(path("my dir")); })) << "the copy is still there";
}

TEST_F(HostsStart, ACopyThatAHostWithoutGlibcCannotStartIsToldInOneSentence) {
  LrunProcess::Options without = options();
  without.environment["NO_GLIBC"] = "1";
  LrunProcess lrun({"--copy", "-H", "a:1", "true"}, without);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "' cannot be started: that host lacks glibc\n")) << lrun.err();
  EXPECT_TRUE(eventually([&] { return fs::is_empty(path("my dir")); })) << "the copy is still there";
}

TEST_F(HostsStart, WorkersHaveTheSignalsAndLimitsOfAPlainRun) {
  const auto few_files = [] {
    ::signal(SIGPIPE, SIG_DFL);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 300;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  };
  const std::vector<std::string> program{"sh", "-c", "echo $RANK $(grep SigIgn /proc/self/status) files $(ulimit -Sn)"};
  LrunProcess::Options start = options();
  start.before_exec = few_files;
  std::vector<std::string> plain_words{"--nproc-per-node", "1"};
  plain_words.insert(plain_words.end(), program.begin(), program.end());
  LrunProcess plain(plain_words, start);
  EXPECT_EQ(plain.wait().code, 0) << plain.err();
  const std::string expected = line_with(plain.out(), "SigIgn:");
  EXPECT_TRUE(contains(expected, "files 300")) << expected;
  std::vector<std::string> words{"-H", "localhost:1,a:1"};
  words.insert(words.end(), program.begin(), program.end());
  LrunProcess lrun(words, start);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(line_with(lrun.out(), "[0] 0 "), "[0] 0 " + expected) << "on the head's own host";
  EXPECT_EQ(line_with(lrun.out(), "[1] 1 "), "[1] 1 " + expected) << "behind ssh";
}

TEST_F(HostsStart, WorkersHaveTheFunctionsAndVariablesOfTheShellWhereLrunWasTyped) {
  LrunProcess::Options start = options();
  start.environment["BASH_FUNC_module%%"] = "() {  echo module $1 of\n echo two lines\n}";
  start.environment["BASH_ENV"] = path("bash_env");
  start.environment["LINES_OF_MINE"] = "one\ntwo";
  std::ofstream(path("bash_env")) << "echo BASH_ENV was read\n";
  LrunProcess lrun({"-H", "a:1", "--output", "raw", "bash", "-c", "module load; echo \"$LINES_OF_MINE\""}, start);
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "BASH_ENV was read\nmodule load of\ntwo lines\none\ntwo\n") << lrun.err();
}

TEST_F(HostsStart, OneMachineByTwoNamesOfSshIsRefusedBeforeTwoNodesTakeTheSameGpu) {
  LrunProcess::Options machine = options();
  machine.environment["LD_LIBRARY_PATH"] = FAKE_NVML_FOLDER;
  machine.environment["FAKE_NVML_GPUS"] = "2";
  LrunProcess lrun({"-H", "a:2,b:2", "touch", path("started")}, machine);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "'a' and 'b' are one host")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), ": name it once, with all its workers: '-H a:4'\n")) << lrun.err();
  EXPECT_EQ(count(lrun.err(), "are one host"), 1U) << "once for both: " << lrun.err();
  EXPECT_FALSE(fs::exists(path("started")));
  LrunProcess on_cpus({"-H", "a:1,b:1", "--accelerator", "cpu", "true"}, machine);
  EXPECT_EQ(on_cpus.wait().code, 0) << on_cpus.err();
}

TEST_F(HostsStart, OneMachineByTwoNamesIsRefused) {
  LrunProcess lrun({"-H", "localhost:2,127.0.0.1:2", "true"}, options());
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(contains(lrun.err(), "'localhost' and '127.0.0.1' are both this host")) << lrun.err();
  EXPECT_TRUE(contains(lrun.err(), "name it once, with all its workers: 'localhost:4'")) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
