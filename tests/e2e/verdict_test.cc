// The culprit of a failed run, and the text of the verdict about it.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <string>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

/// The line of lrun that names the cause.
std::string error_line(const std::string& text) {
  const auto begin = text.rfind("lrun: error: ");
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find('\n', begin) + 1 - begin);
}

nlohmann::json result_of(const LrunProcess& lrun) {
  std::ifstream file(lrun.run_folder() / "result.json");
  return nlohmann::json::parse(file, nullptr, false);
}

/// Rank 2 is a victim whose watchdog aborts it, rank 1 has the error and ends a little later.
constexpr const char* kVictimFirst =
    "cd $0; case $RANK in"
    " 2) ulimit -c 0; echo '[Rank 2] Watchdog caught collective operation timeout' >&2; : > dead; kill -s ABRT $$;;"
    " 1) while [ ! -e dead ]; do sleep 0.01; done; sleep 0.05; echo 'double free or corruption' >&2; exit 3;;"
    " *) exec sleep 1000;; esac";

TEST(Verdict, OverrulesAWatchdogsAbortByALaterErrorAndSaysWhy) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "3", "--settle", "20s", "sh", "-c", kVictimFirst, folder.path()});
  // The moment of 20s is not waited for: its end is asked for when both have spoken.
  ASSERT_TRUE(lrun.wait_for("double free or corruption"));
  ASSERT_TRUE(eventually([&] { return lrun.workers().size() <= 1; }));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_NE(error_line(lrun.err()).find("rank 1"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: note: rank 2 ended first and died of SIGABRT (abort): it gave up waiting "
                            "for the other ranks; that makes it a victim, not the cause\n"),
            std::string::npos)
      << lrun.err();
  const auto result = result_of(lrun);
  EXPECT_EQ(result["culprit"]["rank"], 1);
  EXPECT_EQ(result["culprit"]["cause"], "own_error");
  EXPECT_EQ(result["overruled"]["rank"], 2);
  EXPECT_EQ(result["overruled"]["cause"], "watchdog_abort");
}

TEST(Verdict, WaitsAMomentOnlyAfterAVictim) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "3", "sh", "-c", kVictimFirst, folder.path()});
  const int code = lrun.wait().code;
  EXPECT_TRUE(code == 3 || code == 128 + SIGABRT) << lrun.err();
  std::ifstream events(lrun.run_folder() / "events.jsonl");
  const std::string text{std::istreambuf_iterator<char>(events), {}};
  EXPECT_NE(text.find(R"("event":"settling","rank":2,"moment_ms":250)"), std::string::npos) << text;
}

TEST(Verdict, BlamesAVictimWhenNobodyElseFailed) {
  LrunProcess lrun({"-n", "2", "--settle", "0", "sh", "-c",
                    "[ $RANK = 1 ] && { echo 'RuntimeError: Connection closed by peer' >&2; exit 1; }; sleep 1000"});
  EXPECT_EQ(lrun.wait().code, 1);
  EXPECT_NE(error_line(lrun.err()).find(": it lost the connection to another worker\n"), std::string::npos)
      << lrun.err();
}

TEST(Verdict, ShowsTheTracebackOfAnUndecoratedProgram) {
  const TemporaryFolder folder;
  const std::string script = folder.script("train.py",
                                           "import os, time\n"
                                           "def step():\n"
                                           "    raise ValueError('bad batch')\n"
                                           "if os.environ['RANK'] == '1':\n"
                                           "    step()\n"
                                           "time.sleep(1000)\n");
  LrunProcess lrun({"-n", "2", "--local-ranks-filter", "0", script});
  EXPECT_EQ(lrun.wait().code, 1);
  EXPECT_NE(error_line(lrun.err()).find(": ValueError: bad batch at train.py:3 in step (exit 1)\n"), std::string::npos)
      << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: note: rank 1 printed last:\n  |   File \"" + script + "\", line 3, in step\n"),
            std::string::npos)
      << "the console does not show what rank 1 prints: " << lrun.err();
  EXPECT_EQ(result_of(lrun)["culprit"]["error"], "ValueError: bad batch");
}

TEST(Verdict, HintsAtTheCureOfAKnownCause) {
  LrunProcess lrun({"-n", "1", "python3", "-c", "import no_such_module_of_lrun"});
  EXPECT_EQ(lrun.wait().code, 1);
  EXPECT_NE(lrun.err().find("lrun: hint: install it for the Python that runs the program"), std::string::npos)
      << lrun.err();
}

TEST(Verdict, StaysWithinFifteenLinesForSixtyFourRanks) {
  LrunProcess lrun({"-n", "64", "--log-dir", "/dev/null", "sh", "-c",
                    "[ $RANK = 40 ] && { i=0; while [ $i -lt 40 ]; do echo line $i >&2; i=$((i+1)); done; exit 3; }; "
                    "exec sleep 1000"});
  EXPECT_EQ(lrun.wait().code, 3);
  int lines = 0;
  for (std::size_t at = 0; at < lrun.err().size(); at = lrun.err().find('\n', at) + 1) {
    lines += lrun.err().compare(at, 1, "[") == 0 ? 0 : 1;  // a worker's own lines have a prefix
  }
  EXPECT_LE(lines, 15) << lrun.err();
  EXPECT_NE(lrun.err().find("63 other workers ended when asked to"), std::string::npos) << lrun.err();
}

TEST(Verdict, NamesTheLimitOfCpuTimeThatWasUsedUp) {
  for (const char* const spins : {"while :; do :; done", "(while :; do :; done); exit $?"}) {  // by itself, or a child
    std::string said;
    const auto is_known = [&] {  // not always on a busy machine, where the kernel may count far too many ticks
      LrunProcess lrun({"-n", "1", "sh", "-c", std::string("ulimit -t 1; ") + spins});
      EXPECT_EQ(lrun.wait().code, 137) << lrun.err();
      said = lrun.err();
      return result_of(lrun)["culprit"]["cause"] == "cpu_time_limit";
    };
    EXPECT_TRUE(eventually(is_known)) << said;
    EXPECT_NE(said.find("used up its CPU time limit of 1s"), std::string::npos) << said;
  }
}

/// Leaves an error file as torch's @record does, once its folder is there, and ends.
std::string decorated(const std::string& message, const std::string& time) {
  return "while [ ! -d \"${TORCHELASTIC_ERROR_FILE%/*}\" ]; do sleep 0.01; done; printf '%s' '{\"message\": {"
         "\"message\": \"" +
         message +
         "\", \"extraInfo\": {\"py_callstack\": \"Traceback (most recent call last):\\n  File \\\"a.py\\\", line 3, "
         "in f\\n" +
         message + "\\n\", \"timestamp\": \"" + time + "\"}}}' > \"$TORCHELASTIC_ERROR_FILE\"; exit 9";
}

TEST(ErrorFile, OfAWorkerIsItsOwnAccount) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "[ $RANK = 0 ] && exec sleep 1000; " + decorated("ValueError: bad", "17")});
  EXPECT_EQ(lrun.wait().code, 9);
  EXPECT_NE(error_line(lrun.err()).find(": ValueError: bad at a.py:3 in f (exit 9)\n"), std::string::npos)
      << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: note: rank 1 left in " + (lrun.run_folder() / "attempt_0/1/error.json").string()),
            std::string::npos)
      << lrun.err();
  EXPECT_EQ(result_of(lrun)["culprit"]["error_time"], 17);
}

TEST(ErrorFile, OfTheParentGetsTheWorkersAccountAndItsCode) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "upper.json";
  LrunProcess lrun({"-n", "1", "sh", "-c", decorated("ValueError: bad", "17")},
                   {.environment = {{"TORCHELASTIC_ERROR_FILE", file}}});
  EXPECT_EQ(lrun.wait().code, 9);
  std::ifstream text(file);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << "nothing readable in " << file;
  EXPECT_EQ(json["message"]["message"], "ValueError: bad");
  EXPECT_EQ(json["message"]["errorCode"], 9);
}

TEST(ErrorFile, OfTheParentTellsOfAnUndecoratedWorkerAndOfLrunItself) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "upper.json";
  const auto message_after = [&](std::vector<std::string> arguments) {
    LrunProcess lrun(std::move(arguments), {.environment = {{"TORCHELASTIC_ERROR_FILE", file}}});
    (void)lrun.wait();
    std::ifstream text(file);
    return nlohmann::json::parse(text, nullptr, false)["message"]["message"];
  };
  EXPECT_EQ(message_after({"-n", "1", "python3", "-c", "raise ValueError('plain')"}), "ValueError: plain");
  EXPECT_EQ(message_after({"--grace", "soon", "true"}),
            "'--grace soon': not a time; allowed: a number with ms, s, m, h or d");
  EXPECT_EQ(message_after({"./no-such-program"}), "could not be executed: No such file or directory");
}

TEST(ErrorFile, OfTheParentStaysAwayWhenNobodyIsToBlame) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "upper.json";
  LrunProcess lrun({"-n", "1", "sh", "-c", "echo armed; exec sleep 1000"},
                   {.environment = {{"TORCHELASTIC_ERROR_FILE", file}}});
  ASSERT_TRUE(lrun.wait_for("armed"));
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_FALSE(std::filesystem::exists(file)) << "a stop is no error: an outer launcher would blame it";
}

TEST(ErrorFile, OfAnLrunAroundItMayHaveNoFolderYet) {
  const TemporaryFolder folder;
  const auto shown = [&](const std::string& file) {
    LrunProcess lrun({"-n", "1", "sh", "-c", "exit 3"},
                     {.environment = {{"LRUN_RUN_ID", "outer"}, {"TORCHELASTIC_ERROR_FILE", file}}});
    EXPECT_EQ(lrun.wait().code, 3);
    return lrun.err();
  };
  EXPECT_EQ(shown(folder.path() / "attempt_0" / "0" / "error.json").find("warning"), std::string::npos);
  EXPECT_EQ(shown(folder.path() / "error.json").find("warning"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "error.json"));
}

TEST(ErrorFile, OfTheParentHasTheModeThatTheUmaskLeavesAsTorchs) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "upper.json";
  LrunProcess lrun({"-n", "1", "sh", "-c", "exit 3"},
                   {.environment = {{"TORCHELASTIC_ERROR_FILE", file}}, .before_exec = [] { ::umask(027); }});
  EXPECT_EQ(lrun.wait().code, 3);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(ErrorFile, OfTheParentThatIsAMountIsWrittenInItsPlace) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "upper.json";
  std::ofstream(file) << std::string(4096, 'x');
  const auto mount_it = [&file] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    ::mount(file.c_str(), file.c_str(), nullptr, MS_BIND, nullptr);
  };
  LrunProcess lrun({"-n", "1", "sh", "-c", "grep -q \"$0\" /proc/self/mountinfo || exit 77; exit 3", file},
                   {.environment = {{"TORCHELASTIC_ERROR_FILE", file}}, .before_exec = mount_it});
  const int code = lrun.wait().code;
  if (code == 77) GTEST_SKIP() << "nothing may be mounted here";
  EXPECT_EQ(code, 3);
  EXPECT_EQ(lrun.err().find("warning"), std::string::npos) << lrun.err();
  std::ifstream text(file);
  EXPECT_EQ(nlohmann::json::parse(text, nullptr, false)["message"]["errorCode"], 3);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "something stays beside it";
}

TEST(ErrorFile, OfTheParentThatCannotBeWrittenIsAWarning) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "exit 3"},
                   {.environment = {{"TORCHELASTIC_ERROR_FILE", "/nonexistent/upper.json"}}});
  EXPECT_EQ(lrun.wait().code, 3);
  EXPECT_NE(lrun.err().find("lrun: warning: TORCHELASTIC_ERROR_FILE cannot be followed: "), std::string::npos)
      << lrun.err();
}

}  // namespace
}  // namespace lrun::test
