#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

std::string last_line(const std::string& text) {
  if (text.size() < 2) return text;
  const auto before = text.rfind('\n', text.size() - 2);
  return text.substr(before == std::string::npos ? 0 : before + 1);
}

TEST(Failure, PassesOnTheFirstFailingWorkersCodeAndNamesIt) {
  LrunProcess lrun({"-n", "3", "sh", "-c", "[ $RANK = 1 ] && { echo the reason >&2; exit 3; }; exec sleep 1000"});
  const LrunEnd end = lrun.wait();
  EXPECT_TRUE(end.exited);
  EXPECT_EQ(end.code, 3);
  EXPECT_NE(lrun.err().find("[1] the reason\n"
                            "lrun: error: rank 1 exited with code 3\n"
                            "lrun: note: stopping 2 other workers (up to 30s)\n"
                            "lrun: note: rank 1 ran for "),
            std::string::npos)
      << lrun.err();
  EXPECT_NE(last_line(lrun.err()).find("(local rank 1, pid "), std::string::npos) << lrun.err();
  EXPECT_NE(last_line(lrun.err()).find("; 2 other workers ended when asked to; logs: "), std::string::npos)
      << lrun.err();
}

TEST(Failure, DecodesASegmentationFault) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "[ $RANK = 0 ] && { ulimit -c 0; kill -s SEGV $$; }; exec sleep 1000"});
  EXPECT_EQ(lrun.wait().code, 128 + SIGSEGV);
  EXPECT_NE(lrun.err().find("lrun: error: rank 0 died of SIGSEGV (invalid memory access"), std::string::npos)
      << lrun.err();
}

TEST(Failure, TellsAKillFromOutsideFromItsOwn) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "[ $RANK = 1 ] && kill -s KILL $$; exec sleep 1000"});
  EXPECT_EQ(lrun.wait().code, 137);
  EXPECT_NE(lrun.err().find("lrun: error: rank 1 died of SIGKILL (killed from outside)\n"), std::string::npos)
      << lrun.err();
}

TEST(Failure, AMissingProgramIs127AndStartsNothing) {
  LrunProcess lrun({"-n", "2", "./no-such-program"});
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_EQ(lrun.err().find("lrun: error: cannot run './no-such-program': No such file or directory\n"), 0U)
      << lrun.err();
  EXPECT_TRUE(std::filesystem::is_empty(lrun.state())) << "no run directory for a run that never was";
}

TEST(Failure, AMissingPythonScriptIs127) {
  LrunProcess lrun({"-n", "2", "no-such-script.py"});
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_EQ(lrun.err().find("lrun: error: cannot run 'no-such-script.py'"), 0U) << lrun.err();
}

TEST(Failure, AProgramThatIsNearlyCalledLikeAFileIsAskedAbout) {
  const TemporaryFolder folder;
  (void)folder.script("train.py", "");
  (void)folder.script("worker", "#!/bin/sh\n");
  const std::map<std::string, std::string> meant{
      {"trian.py", "train.py"}, {"./trian.py", "./train.py"}, {"wroker", "./worker"}, {"worker", "./worker"}};
  const std::string not_there = "No such file or directory";
  for (const auto& [typed, file] : meant) {
    LrunProcess lrun({typed}, {.before_exec = [&] { (void)!::chdir(folder.path().c_str()); }});
    EXPECT_EQ(lrun.wait().code, 127);
    EXPECT_EQ(lrun.err(), "lrun: error: cannot run '" + typed +
                              "': " + (typed == "worker" ? "it is not on PATH" : not_there) +
                              "\nlrun: hint: did you mean '" + file + "'?\n");
  }
}

TEST(Failure, AScriptWithoutItsEndingIsAskedAboutAndAFileThatIsNoProgramIsToldOf) {
  const TemporaryFolder folder;
  (void)folder.script("training.py", "");
  (void)folder.script("run.sh", "#!/bin/sh\n", false);
  const std::map<std::string, std::string> hints{{"training", "did you mean 'training.py'?"},
                                                 {"run.sh", "'chmod +x run.sh'"}};
  for (const auto& [typed, hint] : hints) {
    LrunProcess lrun({typed}, {.before_exec = [&] { (void)!::chdir(folder.path().c_str()); }});
    EXPECT_EQ(lrun.wait().code, 127);
    EXPECT_NE(lrun.err().find(hint), std::string::npos) << lrun.err();
  }
}

TEST(Failure, AProgramThatIsNotExecutableIs126) {
  const TemporaryFolder folder;
  const std::string program = folder.script("program", "#!/bin/sh\n", false);
  LrunProcess lrun({"-n", "2", program});
  EXPECT_EQ(lrun.wait().code, 126);
  EXPECT_NE(lrun.err().find("chmod +x"), std::string::npos) << lrun.err();
}

TEST(Failure, AScriptWhoseInterpreterIsMissingIs127) {
  const TemporaryFolder folder;
  const std::string program = folder.script("program", "#!/no/such/interpreter\n");
  LrunProcess lrun({"-n", "3", program});
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_NE(lrun.err().find("its first line names '/no/such/interpreter', which is not there"), std::string::npos)
      << lrun.err();
}

TEST(Failure, AFileThatIsNoProgramIs126) {
  const TemporaryFolder folder;
  const std::string program = folder.script("program", "just text\n");
  LrunProcess lrun({"-n", "3", "--no-python", program});
  EXPECT_EQ(lrun.wait().code, 126) << lrun.err();
}

TEST(Failure, KillsWorkersThatIgnoreTermAfterTheGrace) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "3", "--grace", "200ms", "sh", "-c",
                    "[ $RANK = 0 ] && { while [ ! -e armed1 ] || [ ! -e armed2 ]; do sleep 0.01; done; exit 9; };"
                    "trap '' TERM; echo > armed$RANK; exec sleep 1000"},
                   {.before_exec = [&] { (void)!::chdir(folder.path().c_str()); }});
  EXPECT_EQ(lrun.wait().code, 9);
  EXPECT_NE(lrun.err().find("killing 2 workers that have not ended"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("2 other workers had to be killed after 200ms"), std::string::npos) << lrun.err();
}

TEST(Failure, TellsTheCauseWhenItIsSeenAndNotAfterTheGrace) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "2", "--grace", "1000s", "sh", "-c",
                    "[ $RANK = 1 ] && { while [ ! -e armed ]; do sleep 0.01; done; exit 5; };"
                    "trap '' TERM; echo > armed; exec sleep 1000"},
                   {.before_exec = [&] { (void)!::chdir(folder.path().c_str()); }});
  ASSERT_TRUE(lrun.wait_for("exited with code 5")) << "the other worker still ignores TERM";
  EXPECT_FALSE(living_children(lrun.launcher_pid()).empty());
  lrun.signal(SIGINT);  // the wait is skipped
  EXPECT_EQ(lrun.wait().code, 5) << "the cause stays the cause";
}

TEST(Failure, LeavesTheGraceToWorkersThatSaveSomething) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "2", "sh", "-c",
                    "[ $RANK = 1 ] && { while [ ! -e armed ]; do sleep 0.01; done; exit 4; };"
                    "trap 'sleep 0.3; echo saved > saved; exit 0' TERM; echo > armed; while :; do sleep 0.01; done"},
                   {.before_exec = [&] { (void)!::chdir(folder.path().c_str()); }});
  EXPECT_EQ(lrun.wait().code, 4);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "saved"));
}

TEST(Failure, AWorkerThatEndsEarlyWithZeroIsNoFailure) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "[ $RANK = 0 ] && exit 0; sleep 0.2; echo done"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(lrun.out(), "[1] done\n");
}

TEST(Failure, BlamesTheFirstAlsoWhenManyDieWhileOthersAreStarted) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "60", "sh", "-c",
                    "[ $RANK = 20 ] && { echo $$ > new; mv new pid; exit 7; }; [ $RANK = 3 ] && { until [ -e pid ]; do "
                    ":; done; while grep -q ') [^Z]' /proc/$(cat pid)/stat 2> /dev/null; do :; done; "
                    "sleep 0.05; exit 1; }; exec sleep 1000"},
                   {.before_exec = [&] { (void)!::chdir(folder.path().c_str()); }});
  EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
}

TEST(Failure, AFileSizeLimitEndsNoRun) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "yes | head -c 100000; echo; echo done"}, {.before_exec = [] {
                     const rlimit limit{4096, 4096};
                     ::setrlimit(RLIMIT_FSIZE, &limit);
                   }});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_NE(lrun.out().find("[0] done"), std::string::npos);
}

TEST(Failure, AFolderInThePlaceOfAProgramIs126) {
  LrunProcess lrun({"/tmp"});
  EXPECT_EQ(lrun.wait().code, 126);
  EXPECT_EQ(lrun.err(), "lrun: error: cannot run '/tmp': Is a directory\nlrun: hint: name the program in it\n");
}

TEST(Failure, LogsThatCannotBeWrittenAreRefusedBeforeTheStart) {
  LrunProcess lrun({"--log-dir", "/etc/passwd", "-n", "2", "echo", "started"});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err().find("lrun: error: cannot write logs in '/etc/passwd': "), 0U) << lrun.err();
  EXPECT_EQ(lrun.out(), "");
}

TEST(Failure, NamesNoLogsWhereThereAreNone) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "exit 3"});
  EXPECT_EQ(lrun.wait().code, 3);
  EXPECT_EQ(lrun.err().find("logs: "), std::string::npos) << lrun.err();
}

TEST(Failure, AWordThatIsAVerbElsewhereLeadsToOurOption) {
  LrunProcess lrun({"version"});
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_NE(lrun.err().find("lrun: hint: did you mean 'lrun --version'?\n"), std::string::npos) << lrun.err();
}

TEST(Failure, AMissingPythonIsToldWithTheScriptThatNeedsIt) {
  LrunProcess lrun({"train.py"}, {.environment = {{"PATH", "/nowhere"}}});
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_NE(lrun.err().find("lrun: hint: 'train.py' needs Python: install it, or name one with '--python PATH'"),
            std::string::npos)
      << lrun.err();
}

TEST(Failure, ANamedPythonThatCannotRunIsToldWithWhatNamesIt) {
  LrunProcess by_variable({"train.py"}, {.environment = {{"PYTHON_EXEC", "/nowhere/python"}}});
  EXPECT_EQ(by_variable.wait().code, 127);
  EXPECT_NE(by_variable.err().find("lrun: hint: 'PYTHON_EXEC' names it: '--python PATH' takes "), std::string::npos)
      << by_variable.err();
  LrunProcess folder({"--python", "/usr", "train.py"});
  EXPECT_NE(folder.wait().code, 0);
  EXPECT_NE(folder.err().find("lrun: hint: '--python' names it"), std::string::npos) << folder.err();
  LrunProcess plan({"--dry-run", "--python", "/usr", "train.py"});
  EXPECT_EQ(plan.wait().code, 0);
  EXPECT_NE(plan.err().find("lrun: warning: Python '/usr' (--python) cannot be executed here: this run would fail"),
            std::string::npos)
      << plan.err();
}

TEST(Failure, ALocalRankThatIsNotThereIsRefused) {
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--local-ranks-filter", "7"}, {"-t", "5:1"}}) {
    LrunProcess lrun({option[0], option[1], "true"});
    EXPECT_EQ(lrun.wait().code, 125);
    EXPECT_NE(lrun.err().find("there is no local rank "), std::string::npos) << lrun.err();
    LrunProcess torchrun({"--compat=torchrun", "--no-python", option[0], option[1], "true"});
    EXPECT_EQ(torchrun.wait().code, 0) << torchrun.err();
  }
}

TEST(Failure, TheStackOfNoProcessIsRefused) {
  LrunProcess lrun({"stack", "--pids", "99999999"});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_EQ(lrun.err(), "lrun: error: there is no process 99999999\nlrun: hint: 'lrun status' lists what runs\n");
}

}  // namespace
}  // namespace lrun::test
