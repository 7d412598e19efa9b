// How options reach lrun: files of settings, variables, the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <numeric>
#include <sstream>
#include <vector>

#include "lrun_version.h"
#include "support/lrun_process.h"
#include "support/mentions.h"

namespace lrun::test {
namespace {

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

/// Lines in order: ranks write at the same time.
std::string sorted(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line + "\n");
  std::sort(lines.begin(), lines.end());
  return std::accumulate(lines.begin(), lines.end(), std::string());
}

/// lrun as started in a folder.
LrunProcess::Options in(const TemporaryFolder& folder, std::map<std::string, std::string> environment = {}) {
  return {.environment = std::move(environment),
          .before_exec = [path = folder.path().string()] { (void)!::chdir(path.c_str()); }};
}

TEST(ConfigFile, OfTheFolderGivesDefaults) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 2\noutput = 'raw'\n");
  LrunProcess lrun({"sh", "-c", "echo $WORLD_SIZE"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "2\n2\n");
}

TEST(ConfigFile, ThatIsNamedReplacesTheFoldersAndYieldsToVariableAndFlag) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 2\n");
  write(folder.path() / "big.toml", "devices = 3\nseed = 3\noutput = 'prefix'\n");
  LrunProcess lrun({"--config", "big.toml", "--output=raw", "sh", "-c", "echo $WORLD_SIZE $LRUN_SEED"},
                   in(folder, {{"LRUN_SEED", "4"}}));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "3 4\n3 4\n3 4\n");
}

TEST(ConfigFile, MistakesAreToldWithTheirLineAndNothingIsStarted) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "# ours\n\nstratgy = 'ddp'\n");
  LrunProcess lrun({"sh", "-c", "touch started"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_THAT(lrun.err(),
              mentions({"lrun: error: lrun.toml:3: ", "'stratgy'", "lrun: hint: did you mean 'strategy'?\n"}));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "started"));
}

TEST(ConfigFile, OfTheFolderIsNotRepeatedByANestedLrun) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 2\noutput = 'raw'\n");
  LrunProcess lrun({LRUN_PROGRAM, "--output=raw", "sh", "-c", "echo $WORLD_SIZE"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "1\n1\n");
}

TEST(PrintConfig, ShowsWhatCountsAndStartsNothing) {
  const TemporaryFolder folder;
  write(folder.path() / "lrun.toml", "devices = 3\nseed = 1\nrole = 'r'\n");
  LrunProcess lrun({"--print-config", "-n", "2", "touch", "started"}, in(folder, {{"LRUN_SEED", "4"}}));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.out().find("\nseed = 4                                  # LRUN_SEED\n"), std::string::npos)
      << lrun.out();
  EXPECT_NE(lrun.out().find("\nrole = \"r\"                                # lrun.toml:3\n"), std::string::npos)
      << lrun.out();
  EXPECT_NE(lrun.out().find("\nnproc-per-node = 2                        # -n\n"), std::string::npos) << lrun.out();
  EXPECT_EQ(lrun.out().find("\ndevices = "), std::string::npos) << "the line says it in other words\n" << lrun.out();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "started"));
}

TEST(Chdir, StartsWorkersInAFolderAndLooksForProgramsFromThere) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "job");
  std::ofstream(folder.path() / "job" / "tell.sh") << "#!/bin/sh\necho $PWD $0; pwd -P\n";
  std::filesystem::permissions(folder.path() / "job" / "tell.sh", std::filesystem::perms::owner_all);
  LrunProcess lrun({"--chdir", "job", "--output=raw", "--log-dir", "logs", "./tell.sh"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  const std::string job = (folder.path() / "job").string();
  EXPECT_EQ(lrun.out(), job + " ./tell.sh\n" + job + "\n");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "logs")) << "lrun's own paths begin where it was started";
}

TEST(Chdir, IntoNothingIsRefusedBeforeAnythingIsStarted) {
  const TemporaryFolder folder;
  LrunProcess lrun({"--chdir", "no", "true"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: '--chdir no': workers cannot start there: No such file or directory\n"
            "lrun: hint: name a directory that is there\n");
}

TEST(Chdir, AScriptOfAnotherFolderIsNotThere) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "job");
  write(folder.path() / "here.py", "");
  LrunProcess lrun({"--chdir", "job", "here.py"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 127) << lrun.err();
}

TEST(Env, ChangesWhatWorkersFind) {
  LrunProcess lrun({"--env", "A=1 2", "--env", "OMP_NUM_THREADS=7", "--unset", "B", "--env", "PMI_RANK", "--output=raw",
                    "sh", "-c", "echo $A-$OMP_NUM_THREADS-${B-none}-$PMI_RANK-${SLURM_PROCID-none}"},
                   {.environment = {{"B", "2"}, {"PMI_RANK", "3"}, {"SLURM_PROCID", "4"}}});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.out(), "1 2-7-none-3-none\n");
  EXPECT_EQ(lrun.err(), "");
}

TEST(Env, FindsTheProgramOnThePathOfTheWorkers) {
  const TemporaryFolder folder;
  (void)folder.script("only-here", "#!/bin/sh\necho found\n");
  LrunProcess lrun({"--env", "PATH=" + folder.path().string() + ":/bin:/usr/bin", "--output=raw", "only-here"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "found\n");
}

TEST(Env, TellsWhatCannotBePassedOn) {
  LrunProcess lrun({"--env", "LRUN_TEST_NO_SUCH", "true"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.err(),
            "lrun: warning: there is no variable 'LRUN_TEST_NO_SUCH' to pass on with '--env LRUN_TEST_NO_SUCH'; "
            "'LRUN_TEST_NO_SUCH=VALUE' would set one\n");
}

TEST(Env, TellsOfAValueThatIsAWordOfItsOwn) {
  LrunProcess lrun({"--env", "LRUN_TEST_NO_SUCH", "1", "true"});
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_THAT(lrun.err(), ::testing::EndsWith("lrun: hint: write '--env LRUN_TEST_NO_SUCH=1'\n"));
}

TEST(Rlimit, IsTheWorkersAndNotLruns) {
  LrunProcess lrun({"--rlimit", "nofile=100:200", "--rlimit=core=0", "-n", "2", "--output=raw", "sh", "-c",
                    "echo $(ulimit -Sn) $(ulimit -Hn) $(ulimit -Sc)"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "100 200 0\n100 200 0\n");
}

TEST(Rlimit, ThatMayNotBeSetIsRefusedBeforeAnythingIsStarted) {
  const TemporaryFolder folder;
  LrunProcess::Options options = in(folder);
  options.before_exec = [enter = options.before_exec] {
    enter();
    const struct rlimit low { 50, 100 };
    (void)::setrlimit(RLIMIT_SIGPENDING, &low);
    (void)::prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE);  // root, too, is not to raise it
  };
  LrunProcess lrun({"--rlimit", "sigpending=1000", "touch", "started"}, options);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: '--rlimit sigpending=1000': the hard limit is 100 and may not be raised\n"
            "lrun: hint: at most 'sigpending=100'; a hard limit is raised before lrun starts\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "started"));
}

TEST(Wrap, StartsTheProgramThroughTheCommandOfItsRank) {
  LrunProcess lrun({"-n", "3", "--wrap", "env 'W=all ranks'", "--wrap@1-2=env W=%r/%l", "--output=raw", "sh", "-c",
                    "echo $RANK $W \"$@\"", "sh", "%r"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(sorted(lrun.out()), "0 all ranks %r\n1 1/1 %r\n2 2/2 %r\n");
}

TEST(Wrap, PassesOnTheEndOfTheProgram) {
  LrunProcess lrun({"--wrap", "env", "sh", "-c", "exit 3"});
  EXPECT_EQ(lrun.wait().code, 3);
}

TEST(Wrap, WithAModuleOfPythonRunsTheScriptWithIt) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "train.py") << "import os, sys\nprint(os.environ['RANK'], __name__, *sys.argv[1:])\n"
                                               "if sys.argv[1:] == ['fail']: raise ValueError('bad batch')\n";
  LrunProcess lrun({"-n", "2", "--wrap@1", "python3 -m cProfile -o profile.%r", "--output=raw", "train.py", "a"},
                   in(folder));
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(sorted(lrun.out()), "0 __main__ a\n1 __main__ a\n");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "profile.1"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "profile.0"));
  LrunProcess failing({"--wrap", "python3 -m cProfile -o profile.%r", "train.py", "fail"}, in(folder));
  EXPECT_EQ(failing.wait().code, 1);
  EXPECT_NE(failing.err().find("ValueError: bad batch at train.py:3"), std::string::npos) << failing.err();
}

TEST(Wrap, ThatIsNotThereIsRefusedBeforeAnythingIsStarted) {
  LrunProcess lrun({"-n", "2", "--wrap@1", "no-such-profiler -x", "true"});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: '--wrap@1': 'no-such-profiler' cannot be executed: No such file or directory\n"
            "lrun: hint: name a program that is there, by its path or on PATH\n");
}

TEST(Wrap, AProgramThatOnlyTheCommandFindsIsNotLookedFor) {
  LrunProcess lrun({"--wrap", "echo in-the-container", "--output=raw", "/no/such/program"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "in-the-container /no/such/program\n");
}

TEST(Core, IsWrittenOnRequestAndNamedInTheVerdict) {
  std::ifstream pattern("/proc/sys/kernel/core_pattern");
  std::string text;
  std::getline(pattern, text);
  if (text.find_first_of("|/") != std::string::npos) GTEST_SKIP() << "core files go elsewhere here: " << text;
  const TemporaryFolder folder;
  LrunProcess lrun({"--core", "sh", "-c", "kill -SEGV $$"}, in(folder));
  EXPECT_EQ(lrun.wait().code, 139);
  EXPECT_NE(lrun.err().find("lrun: note: core dump of rank 0: " + (folder.path() / "core").string()), std::string::npos)
      << lrun.err();
}

TEST(Core, ThatTheKernelDoesNotWriteIsToldWithTheReason) {
  std::ifstream pattern("/proc/sys/kernel/core_pattern");
  std::string text;
  std::getline(pattern, text);
  if (text.find_first_of("|/") != std::string::npos) GTEST_SKIP() << "core files go elsewhere here: " << text;
  const TemporaryFolder folder;
  const std::string none = "lrun: note: core dump of rank 0: none was written: ";
  LrunProcess limited({"--core", "--rlimit", "core=0", "sh", "-c", "kill -SEGV $$"}, in(folder));
  EXPECT_EQ(limited.wait().code, 139);
  EXPECT_NE(limited.err().find(none + "the core file size limit is 0\n"), std::string::npos) << limited.err();
  LrunProcess switched_off({"--core", "sh", "-c", "ulimit -c 0; kill -SEGV $$"}, in(folder));
  EXPECT_EQ(switched_off.wait().code, 139);
  EXPECT_NE(switched_off.err().find(none + "the program may have disabled core files, or left '" +
                                    folder.path().string() + "'\n"),
            std::string::npos)
      << switched_off.err();
}

TEST(Core, WithoutTheLimitForItIsRefused) {
  LrunProcess::Options options;
  options.before_exec = [] {
    const struct rlimit none { 0, 0 };
    (void)::setrlimit(RLIMIT_CORE, &none);
  };
  LrunProcess lrun({"--core", "true"}, options);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: '--core': the hard limit of core files is 0\n"
            "lrun: hint: raise it: 'ulimit -Hc unlimited' as root\n");
}

TEST(DebugRank, HasTheTerminalAndCtrlC) {
  LrunProcess lrun({"-n", "2", "--debug-rank", "1", "--wrap@1",
                    ("sh -c 'trap \"echo interrupted\" INT; tty; printf \"(debug) \"; "
                     "read -r line || read -r line; echo \"read $line\"; exec \"$@\"' sh"),
                    "sh", "-c", "echo rank $RANK"},
                   {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  ASSERT_TRUE(lrun.wait_for("(debug) ")) << lrun.err();
  EXPECT_NE(lrun.err().find("/dev/pts/"), std::string::npos) << lrun.err();
  lrun.type("\x03");
  ASSERT_TRUE(lrun.wait_for("interrupted")) << "Ctrl-C is the debugger's";
  lrun.type("go on\n");
  ASSERT_TRUE(lrun.wait_for("read go on\r")) << lrun.err();
  ASSERT_TRUE(lrun.wait_for("\nrank 1\r")) << lrun.err() << "as it is, without a prefix";
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_NE(lrun.err().find("[0] rank 0\r\n"), std::string::npos) << lrun.err();
}

TEST(DebugRank, TheTerminalIsAsBeforeWhenTheDebuggerHasEnded) {
  LrunProcess lrun({"-n", "2", "--debug-rank", "0", "--wrap@0", "true", "--output=raw", "sh", "-c",
                    "[ $RANK = 0 ] || exec sleep 1000"},
                   {.environment = {{"NO_COLOR", "1"}}, .terminal = true});
  ASSERT_TRUE(eventually([&] { return lrun.workers().size() == 1; }));
  ASSERT_TRUE(eventually([&] {
    lrun.type("\x03");  // a key press while the terminal is raw is the debugger's, or lost with it
    return lrun.workers().empty();
  }));
  EXPECT_EQ(lrun.wait().signal_number, SIGINT);
}

TEST(DebugRank, LinesOfOthersLeaveWhatIsTypedWhole) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name) { std::ofstream(folder / name) << name; };
  const std::string others = "until [ -e go ]; do sleep 0.02; done; echo hello; until [ -e end ]; do sleep 0.02; done";
  LrunProcess::Options options = in(folder);
  options.environment["NO_COLOR"] = "1";
  options.terminal = true;
  LrunProcess lrun(
      {"-n", "2", "--debug-rank", "1", "--wrap@1", "sh -c 'printf \"(debug) \"; read -r line; exec \"$@\"' sh", "sh",
       "-c", "[ $RANK = 1 ] || { " + others + "; }"},
      options);
  ASSERT_TRUE(lrun.wait_for("(debug) ")) << lrun.err();
  lrun.type("go ");
  ASSERT_TRUE(lrun.wait_for("(debug) go ")) << lrun.err();
  make("go");
  ASSERT_TRUE(lrun.wait_for("\r\x1b[K[0] hello\r\n(debug) go ")) << lrun.err() << "the prompt is below the line";
  lrun.type("on\n");
  ASSERT_TRUE(
      lrun.wait_for("lrun: note: the debugger of rank 1 has ended: Ctrl-C now stops the run; 1 other rank runs on"))
      << lrun.err();
  make("end");
  EXPECT_EQ(lrun.wait().code, 0);
}

/// A shell with job control, './shell', which is the debugger of an outer run, starts an inner one with a debugger.
constexpr const char* kInnerRun = " -n 2 --debug-rank 0 --wrap@0 ./debugger ./train\n";
LrunProcess::Options shell_in(const TemporaryFolder& folder) {
  (void)folder.script("shell", "#!/bin/sh\nexec bash --norc --noprofile --noediting -i\n");
  LrunProcess::Options options = in(folder, {{"NO_COLOR", "1"}, {"PS1", "shell> "}, {"INPUTRC", "/dev/null"}});
  options.terminal = true;
  return options;
}

TEST(DebugRank, InTheBackgroundTheTerminalIsTheShells) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name) { std::ofstream(folder / name) << name; };
  (void)folder.script("debugger", "#!/bin/sh\nprintf '(debug) '\nread -r line\necho \"read $line\"\n");
  (void)folder.script("train", R"(#!/bin/sh
[ "$RANK" = 1 ] || exit 0
set -- $(cat /proc/$PPID/stat)
for name in first second; do
  until [ -e $name ]; do sleep 0.02; done
  kill -TSTP $4
  until [ -e $name.seen ]; do sleep 0.02; done
  echo "went on after the $name stop"
done
)");
  LrunProcess outer({"--debug-rank", "0", "--wrap@0", "./shell", "true"}, shell_in(folder));
  ASSERT_TRUE(outer.wait_for("shell> ")) << outer.err();
  outer.type(std::string(LRUN_PROGRAM) + kInnerRun);
  ASSERT_TRUE(outer.wait_for("(debug) ")) << outer.err();
  make("first");
  ASSERT_TRUE(outer.wait_for("Stopped")) << outer.err();
  outer.type("bg\n");
  make("first.seen");
  ASSERT_TRUE(outer.wait_for("[1] went on after the first stop")) << outer.err();
  outer.type("echo typed for $((40 + 2))\n");
  ASSERT_TRUE(outer.wait_for("typed for 42")) << outer.err() << "the shell has the terminal";
  make("second");
  outer.type("until jobs -s | grep -q Stopped; do sleep 0.1; done; fg\n");
  make("second.seen");
  ASSERT_TRUE(outer.wait_for("[1] went on after the second stop")) << outer.err();
  outer.type("step\n");
  ASSERT_TRUE(outer.wait_for("read step\r")) << outer.err() << "the debugger has the terminal again";
  const std::size_t at = outer.err().find("read step\r");
  ASSERT_TRUE(outer.read_until([&] { return outer.err().find("shell> ", at) != std::string::npos; })) << outer.err();
  outer.type("exit\n");
  EXPECT_EQ(outer.wait().code, 0) << outer.err();
}

/// The launcher is held while the job is stopped and continued, so that it only sees the SIGCONT.
TEST(DebugRank, KeysAreTheShellsAfterAStopThatTheLauncherDidNotSee) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name) { std::ofstream(folder / name) << name; };
  (void)folder.script("debugger", "#!/bin/sh\nprintf '(debug) '\nread -r line\necho \"the debugger read $line\"\n");
  (void)folder.script("train", R"(#!/bin/sh
[ "$RANK" = 1 ] || exit 0
set -- $(cat /proc/$PPID/stat)
until [ -e stop ]; do sleep 0.02; done
kill -STOP $PPID
kill -TSTP $4
until [ -e seen ]; do sleep 0.02; done
echo went on
)");
  LrunProcess outer({"--debug-rank", "0", "--wrap@0", "./shell", "true"}, shell_in(folder));
  ASSERT_TRUE(outer.wait_for("shell> ")) << outer.err();
  outer.type(std::string(LRUN_PROGRAM) + kInnerRun);
  ASSERT_TRUE(outer.wait_for("(debug) ")) << outer.err();
  make("stop");
  ASSERT_TRUE(outer.wait_for("Stopped")) << outer.err();
  outer.type("bg; until [ -e go ]; do sleep 0.02; done; read -r line; echo the shell read $line\n");
  make("seen");
  ASSERT_TRUE(outer.wait_for("[1] went on")) << outer.err();
  outer.type("this line\n");
  make("go");
  ASSERT_TRUE(outer.read_until([&] { return outer.err().find(" read this line\r") != std::string::npos; }))
      << outer.err();
  EXPECT_NE(outer.err().find("the shell read this line\r"), std::string::npos) << outer.err();
  outer.type("kill %1; wait; exit 0\n");
  EXPECT_EQ(outer.wait().code, 0) << outer.err();
}

TEST(DebugRank, WithoutATerminalOrWithTimeLimitsIsRefused) {
  LrunProcess lrun({"--debug-rank", "0", "--wrap@0", "true", "true"}, {});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(),
            "lrun: error: '--debug-rank' needs a terminal, and standard input is not one\n"
            "lrun: hint: start lrun from a shell; 'ssh -t' and 'docker run -it' make a terminal\n");
  LrunProcess late({"--debug-rank", "0", "--hang-timeout", "1m", "true"});
  EXPECT_EQ(late.wait().code, 125);
  EXPECT_EQ(late.err(),
            "lrun: error: '--hang-timeout' would end the run while the debugger of '--debug-rank' stops it\n"
            "lrun: hint: remove one of them\n");
  LrunProcess many({"-n", "2", "--debug-rank", "2", "true"});
  EXPECT_EQ(many.wait().code, 125);
  EXPECT_EQ(many.err(),
            "lrun: error: '--debug-rank 2': there is no such rank\n"
            "lrun: hint: this run has the ranks 0 to 1\n");
}

TEST(Version, IsTheFirstLineAboveTheFactsOfTheBuild) {
  LrunProcess lrun({"--version"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_THAT(lrun.out(), ::testing::MatchesRegex("lrun " LRUN_VERSION "\n"
                                                  "(commit: [0-9a-f]+(-dirty)?\n)?"
                                                  "build: [^\n]+, [^\n]+\n"
                                                  "(glibc: 2\\.[0-9]+ or newer\n)?"));
}

TEST(DryRun, SaysThatTheProgramIsMissing) {
  LrunProcess lrun({"--dry-run", "./no-such-program"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_THAT(lrun.err(), mentions({"lrun: warning: PROGRAM './no-such-program'", "exit code 127\n"}));
  EXPECT_EQ(lrun.out().find("warning"), std::string::npos) << "once: " << lrun.out();
}

}  // namespace
}  // namespace lrun::test
