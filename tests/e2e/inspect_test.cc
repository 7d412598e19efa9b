#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/beside.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The text behind a rank, or ranks like '0-2', in the table of `lrun status`; empty: they have no line.
std::string table_row(const std::string& text, const std::string& ranks) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  " + ranks + " ")) continue;
    const std::size_t at = line.find_first_not_of(' ', 2 + ranks.size());
    return at == std::string::npos ? std::string() : line.substr(at);
  }
  return {};
}
std::string table_row(const std::string& text, int rank) { return table_row(text, std::to_string(rank)); }

TEST(Status, SaysWhatRunsAndWhatEachRankPrintedLast) {
  LrunProcess run({"-n", "3", "sh", "-c", "echo step $RANK; [ $RANK = 1 ] && exit 0; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] step 0") && run.wait_for("[1] step 1") && run.wait_for("[2] step 2"));
  ASSERT_TRUE(has_socket(run));
  const std::string id = run.run_folder().filename().string();
  std::string said;
  ASSERT_TRUE(eventually([&] {
    Beside status(run, {"status"});
    EXPECT_EQ(status.wait().code, 0) << status.err();
    said = status.out();
    return table_row(said, 1).starts_with("exited with code 0 ");
  })) << said;
  EXPECT_THAT(said, StartsWith("run " + id + " (pid " + std::to_string(run.pid()) + "): running for "));
  EXPECT_THAT(said, HasSubstr("s, world size 3, ddp: sh -c 'echo step $RANK; "));
  EXPECT_THAT(table_row(said, 1), EndsWith(" step 1"));
  EXPECT_THAT(table_row(said, 2), AllOf(StartsWith("running "), EndsWith(" step 2")));
  EXPECT_THAT(said, ContainsRegex("\n  RANK  STATE               QUIET  CPU +MEMORY +LAST LINE\n"));
}

TEST(Status, IsJsonForPrograms) {
  LrunProcess run({"-n", "2", "sh", "-c", "echo here; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] here"));
  ASSERT_TRUE(has_socket(run));
  Beside status(run, {"status", "--json", run.run_folder().filename().string()});
  ASSERT_EQ(status.wait().code, 0) << status.err();
  const auto json = nlohmann::json::parse(status.out());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["runs"][0]["pid"], run.pid());
  EXPECT_EQ(json["runs"][0]["workers"][0]["last_line"], "here");
  EXPECT_TRUE(json["silent"].empty());
}

TEST(Status, OfARunThatIsOverIsOneLineAndAHint) {
  LrunProcess run({"-n", "1", "true"});
  ASSERT_EQ(run.wait().code, 0);
  const std::string id = run.run_folder().filename().string();
  Beside status(run, {"status", id});
  EXPECT_EQ(status.wait().code, 125);
  EXPECT_THAT(status.err(), StartsWith("lrun: error: run '" + id + "' has ended\nlrun: hint: "));
  Beside none(run, {"status"});
  EXPECT_EQ(none.wait().code, 0);
  EXPECT_THAT(none.out(), StartsWith("no run is alive in '" + run.state().string() + "'\nthe last one was '" + id +
                                     "', which ended "));
  EXPECT_THAT(none.out(), EndsWith("s ago: ok; 'lrun report' tells what happened\n"));
  Beside unknown(run, {"status", "nope"});
  EXPECT_EQ(unknown.wait().code, 125);
  EXPECT_EQ(unknown.err(), "lrun: error: no run 'nope' in '" + run.state().string() +
                               "'\nlrun: hint: without a name the last run is meant, and 'lrun runs' lists all\n");
  Beside last(run, {"status", "last"});
  EXPECT_EQ(last.wait().code, 125);
  EXPECT_EQ(last.err(), "lrun: error: no run 'last' in '" + run.state().string() +
                            "'\nlrun: hint: leave 'last' out: without a name the last run is meant\n");
}

TEST(Status, TellsAStoppedWorkerFromOneThatRuns) {
  LrunProcess run({"-n", "2", "sh", "-c", "[ $RANK = 1 ] && kill -s STOP $$; exec sleep 1000"});
  std::string said;
  EXPECT_TRUE(eventually([&] {
    Beside status(run, {"status"});
    EXPECT_EQ(status.wait().code, 0) << status.err();
    said = status.out();
    return table_row(said, 0).starts_with("running ") && table_row(said, 1).starts_with("stopped ");
  })) << said;
}

TEST(Status, SaysWhatARankUsesAndHowFastItSteps) {
  // Two steps, a second apart, as liblrun reports them.
  LrunProcess run({"-n", "2", "python3", "-c", R"(
import os, struct, time
fd, offset = map(int, os.environ["LRUN_PROGRESS_FD"].split(":"))
now = time.monotonic_ns()
os.pwrite(fd, struct.pack("QQQ", 3, now, now - 10**9), offset)
print("here", flush=True)
time.sleep(1000))"});
  ASSERT_TRUE(run.wait_for("[0] here") && run.wait_for("[1] here"));
  ASSERT_TRUE(has_socket(run));
  Beside status(run, {"status", "--json"});
  ASSERT_EQ(status.wait().code, 0) << status.err();
  const nlohmann::json workers = nlohmann::json::parse(status.out())["runs"][0]["workers"];
  for (const auto& worker : workers) {
    EXPECT_GT(worker["resident_bytes"], 1024 * 1024) << worker;
    EXPECT_GE(worker["cpu_percent"], 0) << worker;
    EXPECT_GE(worker["quiet_ms"], 0) << worker;
    EXPECT_EQ(worker["steps"]["count"], 3) << worker;
    EXPECT_GT(worker["steps_per_second"], 0) << worker;
    EXPECT_LE(worker["steps_per_second"], 2) << worker;
  }
}

TEST(Status, KnowsARunByTheNameOfItsJob) {
  const auto start = [](const std::string& job) {
    return std::vector<std::string>{"--rdzv-id", job, "-n", "1", "sh", "-c", "echo here; exec sleep 1000"};
  };
  LrunProcess run(start("resnet"));
  ASSERT_TRUE(run.wait_for("[0] here"));
  const std::filesystem::path folder = run.run_folder();
  Beside ended(run, {"--rdzv-id", "resnet", "-n", "1", "sh", "-c", "echo was here; exit 3"});
  ASSERT_EQ(ended.wait().code, 3);
  for (const std::string name : {"resnet", "resn"}) {
    Beside status(run, {"status", name});
    EXPECT_EQ(status.wait().code, 0) << status.err();
    EXPECT_THAT(status.out(), StartsWith("run " + folder.filename().string() + " ")) << "the living one";
  }
  Beside report(run, {"report", "resnet"});
  EXPECT_EQ(report.wait().code, 125);
  EXPECT_THAT(report.err(), StartsWith("lrun: error: 'resnet' matches several runs\nlrun: hint: name one: '"));
}

TEST(Status, ReportsALauncherThatDoesNotAnswer) {
  LrunProcess run({"-n", "1", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] ready"));
  ASSERT_TRUE(has_socket(run));
  const pid_t launcher = run.launcher_pid();
  ::kill(launcher, SIGSTOP);
  Beside status(run, {"status"});
  EXPECT_EQ(status.wait().code, 125);
  EXPECT_THAT(status.err(), HasSubstr("is alive and does not answer"));
  Beside stack(run, {"stack"}, "/nonexistent");
  EXPECT_EQ(stack.wait().code, 0) << "its events name the workers";
  EXPECT_THAT(stack.out(), ContainsRegex("^rank 0, pid [0-9]+ .sleep, 1 thread.: is in clock_nanosleep"));
  ::kill(launcher, SIGCONT);
  run.signal(SIGTERM);
  run.wait();
}

/// A run whose ranks wait for a file, `go` in its state folder, and end then.
std::vector<std::string> until_told() {
  return {"-n", "2", "sh", "-c", "echo here; until [ -e $LRUN_STATE/go ]; do sleep 0.05; done; exit $RANK"};
}

void tell(const LrunProcess& run) { std::ofstream(run.state() / "go") << "now"; }

TEST(StatusWatch, DrawsOnATerminalUntilTheRunEndsAndSaysHow) {
  LrunProcess run(until_told());
  ASSERT_TRUE(run.wait_for("[0] here") && run.wait_for("[1] here"));
  ASSERT_TRUE(has_socket(run));
  const std::string id = run.run_folder().filename().string();
  LrunProcess watch({"status", "--watch"}, {.environment = {{"LRUN_STATE", run.state().string()}}, .terminal = true});
  const std::string again = "\r\x1b[4A";  // the run, the names of the columns, two ranks
  ASSERT_TRUE(watch.wait_for(again)) << watch.err();
  const std::string first = watch.err().substr(0, watch.err().find(again));
  EXPECT_THAT(first, HasSubstr("run " + id + " (pid "));
  EXPECT_THAT(first, ContainsRegex("  RANK  STATE    QUIET  CPU +MEMORY +LAST LINE"));
  EXPECT_THAT(table_row(first, 1), StartsWith("running "));
  tell(run);
  EXPECT_EQ(run.wait().code, 1);
  EXPECT_EQ(watch.wait().code, 0) << "whatever became of the run";
  EXPECT_THAT(watch.err(), EndsWith("\x1b[Jrun " + id + " has ended: rank 1: exit code 1\r\n"));
}

TEST(StatusWatch, CtrlCEndsTheWatchingAndNotTheRun) {
  LrunProcess run(until_told());
  ASSERT_TRUE(run.wait_for("[0] here"));
  ASSERT_TRUE(has_socket(run));
  LrunProcess watch({"status", "--watch"}, {.environment = {{"LRUN_STATE", run.state().string()}}, .terminal = true});
  ASSERT_TRUE(watch.wait_for("LAST LINE")) << watch.err();
  watch.type("\x03");
  EXPECT_EQ(watch.wait().signal_number, SIGINT) << "as of any program that a shell starts";
  EXPECT_THAT(watch.err(), HasSubstr("\x1b[?7h")) << "lines wrap again";
  EXPECT_THAT(watch.err(), Not(HasSubstr("^C"))) << "keys are not shown in the table";
  LrunProcess other({"status", "--watch"}, {.environment = {{"LRUN_STATE", run.state().string()}}, .terminal = true});
  ASSERT_TRUE(other.wait_for("LAST LINE")) << other.err();
  other.type("xyq");
  EXPECT_EQ(other.wait().code, 0);
  EXPECT_THAT(other.err(), Not(HasSubstr("xy")));
  tell(run);
  EXPECT_EQ(run.wait().code, 1);
}

TEST(StatusWatch, PrintsABlockForEachLookWithoutATerminal) {
  LrunProcess run(until_told());
  ASSERT_TRUE(run.wait_for("[0] here") && run.wait_for("[1] here"));
  ASSERT_TRUE(has_socket(run));
  const std::string id = run.run_folder().filename().string();
  Beside text(run, {"status", "--watch", id});
  Beside json(run, {"status", "--watch", "--json"});
  const auto looks = [&] {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.out().find("RANK", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  ASSERT_TRUE(text.read_until([&] { return looks() >= 2; })) << text.out();
  tell(run);
  EXPECT_EQ(run.wait().code, 1);
  EXPECT_EQ(text.wait().code, 0) << text.err();
  EXPECT_EQ(text.out().find('\x1b'), std::string::npos);
  EXPECT_THAT(text.out(), EndsWith("\n\nrun " + id + " has ended: rank 1: exit code 1\n"));
  EXPECT_EQ(json.wait().code, 0) << json.err();
  std::istringstream lines(json.out());
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) last = nlohmann::json::parse(line);
  EXPECT_TRUE(last["runs"].empty());
  EXPECT_EQ(last["ended"][id], "rank 1: exit code 1");
}

TEST(StatusWatch, EndsWithItsReader) {
  LrunProcess run({"-n", "1", "sh", "-c", "echo here; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] here"));
  ASSERT_TRUE(has_socket(run));
  Beside watch(run, {"status", "--watch"});
  ASSERT_TRUE(watch.wait_for("LAST LINE"));
  watch.close_stdout();
  EXPECT_EQ(watch.wait().code, 0) << watch.err();
  EXPECT_EQ(watch.err(), "");
}

TEST(StatusWatch, WithoutALiveRunSaysSo) {
  LrunProcess run({"-n", "1", "true"});
  ASSERT_EQ(run.wait().code, 0);
  Beside watch(run, {"status", "--watch"});
  EXPECT_EQ(watch.wait().code, 0);
  EXPECT_THAT(watch.out(), StartsWith("no run is alive in '" + run.state().string() + "'\nthe last one was '"));
}

TEST(Logs, AreTheLinesOfTheRanksWithTheRankInFront) {
  LrunProcess run({"-n", "3", "sh", "-c", "echo out $RANK; echo err $RANK >&2; printf 'end %s' $RANK"});
  ASSERT_EQ(run.wait().code, 0);
  Beside all(run, {"logs"});
  EXPECT_EQ(all.wait().code, 0) << all.err();
  EXPECT_EQ(all.out(),
            "[0] out 0\n[0] end 0\n[0] err 0\n[1] out 1\n[1] end 1\n[1] err 1\n[2] out 2\n[2] end 2\n[2] err 2\n");
  Beside some(run, {"logs", run.run_folder().filename().string(), "0,2", "--grep", "r", "--tail", "1"});
  EXPECT_EQ(some.wait().code, 0) << some.err();
  EXPECT_EQ(some.out(), "[0] err 0\n[2] err 2\n");
  Beside out(run, {"logs", "1", "--stream", "stdout", "--grep", "nothing"});
  EXPECT_EQ(out.wait().code, 0);
  EXPECT_EQ(out.out(), "");
  EXPECT_EQ(out.err(), "lrun: note: no line there has 'nothing'\n");
}

TEST(Logs, OfWhatIsNotThereAreRefusedInOneLineAndAHint) {
  LrunProcess run({"-n", "2", "--log-dir", "/dev/null", "true"});
  ASSERT_EQ(run.wait().code, 0);
  const std::string id = run.run_folder().filename().string();
  Beside none(run, {"logs"});
  EXPECT_EQ(none.wait().code, 125);
  EXPECT_EQ(none.err(), "lrun: error: run '" + id +
                            "' has no log files\nlrun: hint: '--log-dir /dev/null' keeps none; 'lrun report " + id +
                            "' says how it went\n");
  LrunProcess logged({"-n", "2", "echo", "here"});
  ASSERT_EQ(logged.wait().code, 0);
  const std::string name = logged.run_folder().filename().string();
  Beside rank(logged, {"logs", "1-3", "4"});
  EXPECT_EQ(rank.wait().code, 125);
  EXPECT_EQ(rank.err(), "lrun: error: run '" + name + "' has no rank 4 here\nlrun: hint: here it has ranks 0-1\n");
  Beside attempt(logged, {"logs", "--attempt", "1"});
  EXPECT_EQ(attempt.wait().code, 125);
  EXPECT_EQ(attempt.err(), "lrun: error: run '" + name + "' has no attempt 1\nlrun: hint: its last attempt is 0\n");
}

TEST(Logs, FollowARunThroughItsAttemptsToItsEnd) {
  const TemporaryFolder folder;
  const std::string go = (folder / "go").string();
  LrunProcess run({"-n", "1", "--max-restarts", "1", "--restart-backoff", "0", "sh", "-c",
                   "echo attempt $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || "
                   "{ while [ ! -e " +
                       go + " ]; do sleep 0.05; done; exit 3; }"});
  ASSERT_TRUE(run.wait_for("[0] attempt 0"));
  ASSERT_TRUE(has_socket(run));
  Beside logs(run, {"logs", "-f"});
  ASSERT_TRUE(logs.wait_for("[0] attempt 0"));
  std::ofstream(go).close();
  EXPECT_EQ(run.wait().code, 0) << run.err();
  EXPECT_EQ(logs.wait().code, 0) << logs.err();
  EXPECT_EQ(logs.out(), "[0] attempt 0\n[0] attempt 1\n");
  Beside first(run, {"logs", "--attempt", "0"});
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(first.out(), "[0] attempt 0\n");
  Beside over(run, {"logs", "-f"});
  EXPECT_EQ(over.wait().code, 125) << "nothing is alive";
}

TEST(Logs, OnATerminalHaveNoEscapeSequencesOfWorkers) {
  LrunProcess run({"-n", "1", "sh", "-c", "printf '1%%\\r2%%\\n\\033[31mred\\033[2J\\033]0;title\\007\\n'"});
  ASSERT_EQ(run.wait().code, 0);
  LrunProcess logs({"logs"},
                   {.environment = {{"LRUN_STATE", run.state().string()}, {"NO_COLOR", "1"}}, .terminal = true});
  EXPECT_EQ(logs.wait().code, 0);
  EXPECT_EQ(logs.err(), "[0] 2%\r\n[0] red\r\n");
}

TEST(Runs, AreListedWithWhatBecameOfThem) {
  const TemporaryFolder state;
  const LrunProcess::Options kept{.environment = {{"LRUN_STATE", state.path().string()}}};
  const auto list = [&](std::vector<std::string> words) {
    LrunProcess runs(std::move(words), kept);
    EXPECT_EQ(runs.wait().code, 0) << runs.err();
    return runs.out();
  };
  EXPECT_EQ(list({"runs"}), "no run is kept in '" + state.path().string() + "'\n");
  EXPECT_EQ(LrunProcess({"-n", "2", "true"}, kept).wait().code, 0);
  EXPECT_EQ(LrunProcess({"-n", "3", "sh", "-c", "[ $RANK = 1 ] && exit 7; exec sleep 1000"}, kept).wait().code, 7);
  LrunProcess living({"-n", "1", "sh", "-c", "echo here; exec sleep 1000"}, kept);
  ASSERT_TRUE(living.wait_for("[0] here"));
  nlohmann::json runs;
  ASSERT_TRUE(eventually([&] {  // its events come a moment after its workers
    runs = nlohmann::json::parse(list({"runs", "--json"}))["runs"];
    return runs.size() == 3 && runs[2]["world_size"] == 1;
  })) << runs;
  EXPECT_EQ(runs[0]["result"], "ok");
  EXPECT_EQ(runs[1]["result"], "rank 1: exit code 7");
  EXPECT_EQ(runs[2]["result"], "running");
  EXPECT_THAT(list({"runs"}), HasSubstr("  3        rank 1: exit code 7  sh -c '[ $RANK = 1 ]"));
}

TEST(Again, RunsTheSameCommandLineInItsFolder) {
  const TemporaryFolder folder;
  LrunProcess run({"-n", "1", "sh", "-c", "pwd; echo \"$0\"", "it's  two\nlines"},
                  {.before_exec = [&] { (void)!::chdir(folder.path().c_str()); }});
  ASSERT_EQ(run.wait().code, 0);
  Beside shown(run, {"again", "--dry-run"});
  EXPECT_EQ(shown.wait().code, 0) << shown.err();
  EXPECT_THAT(shown.out(), StartsWith("cd " + folder.path().string() + " && "));
  EXPECT_THAT(shown.out(), EndsWith(" -n 1 sh -c 'pwd; echo \"$0\"' 'it'\\''s  two\nlines'\n"));
  Beside again(run, {"again"});
  EXPECT_EQ(again.wait().code, 0) << again.err();
  EXPECT_EQ(again.out(), run.out());
  EXPECT_THAT(again.err(), StartsWith("lrun: note: again: cd " + folder.path().string() + " && "));
}

TEST(Again, HidesSecretsThatItRunsWith) {
  LrunProcess run({"-n", "1", "sh", "-c", "[ \"$2\" = sesame ] && echo known", "sh", "--api-key", "sesame"});
  ASSERT_EQ(run.wait().code, 0) << run.err();
  for (const char* verb : {"runs", "report"}) {
    Beside shown(run, {verb});
    EXPECT_EQ(shown.wait().code, 0) << shown.err();
    EXPECT_THAT(shown.out(), HasSubstr("--api-key '***'"));
  }
  Beside again(run, {"again"});
  EXPECT_EQ(again.wait().code, 0) << again.err();
  EXPECT_THAT(again.out(), HasSubstr("known"));
  EXPECT_THAT(again.err(), HasSubstr("--api-key '***'"));
}

TEST(Again, PrintsALineThatAShellRuns) {
  const std::vector<std::string> words{"it's", "two\nlines", "a  b\t", "$HOME `ls` \"\\\" !",
                                       "",     "~",          "*",      std::string(20'000, 'x')};
  std::vector<std::string> command{"-n", "1", "sh", "-c", "for word; do printf '<%s>' \"$word\"; done; echo", "sh"};
  command.insert(command.end(), words.begin(), words.end());
  LrunProcess run(command);
  ASSERT_EQ(run.wait().code, 0) << run.err();
  Beside shown(run, {"again", "--dry-run"});
  EXPECT_EQ(shown.wait().code, 0) << shown.err();
  const std::filesystem::path out = run.state() / "out";
  const std::string line = shown.out().substr(0, shown.out().size() - 1) + " >" + out.string();
  EXPECT_EQ(std::system(("export LRUN_STATE=" + run.state().string() + "; " + line).c_str()), 0);
  std::ifstream file(out);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), run.out());
  EXPECT_THAT(run.out(), HasSubstr("<it's><two\n"));
}

TEST(Again, OfARunWithoutACommandLineIsRefused) {
  LrunProcess run({"-n", "1", "true"});
  ASSERT_EQ(run.wait().code, 0);
  const std::filesystem::path events = run.run_folder() / "events.jsonl";
  std::ofstream(events) << R"({"schema":1,"time":1.5,"event":"run_started","run_id":"r","argv":["true"],)"
                        << R"("strategy":"ddp","world_size":1,"workers":[]})" << '\n';
  const std::string id = run.run_folder().filename().string();
  Beside again(run, {"again"});
  EXPECT_EQ(again.wait().code, 125);
  EXPECT_EQ(again.err(), "lrun: error: run '" + id + "' has no command line of this host\nlrun: hint: 'lrun report " +
                             id + "' shows what its workers ran\n");
}

TEST(Again, OfARunWithAVeryLongCommandLineIsRefusedAndTheRestIsKept) {
  std::vector<std::string> words{"-n", "1", "sh", "-c", "echo $#", "sh"};
  words.insert(words.end(), 6, std::string(100'000, 'x'));
  LrunProcess run(words);
  ASSERT_EQ(run.wait().code, 0) << run.err();
  const std::string id = run.run_folder().filename().string();
  Beside logs(run, {"logs"});
  EXPECT_EQ(logs.wait().code, 0) << logs.err();
  EXPECT_EQ(logs.out(), "[0] 6\n");
  Beside report(run, {"report"});
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), HasSubstr(": sh -c 'echo $#' sh 'xxx"));
  Beside again(run, {"again"});
  EXPECT_EQ(again.wait().code, 125);
  EXPECT_THAT(again.err(), StartsWith("lrun: error: the command line of run '" + id + "' was too long to be kept: 60"));
}

TEST(Report, TellsTheVerdictAgainAndWhatHappenedWhen) {
  LrunProcess run({"-n", "2", "--env", "TOKEN=confidential", "sh", "-c",
                   "echo here; [ $RANK = 1 ] && { echo the reason >&2; exit 3; }; exec sleep 1000"});
  ASSERT_EQ(run.wait().code, 3);
  const std::string id = run.run_folder().filename().string();
  const std::string page = (run.state() / "page.html").string();
  Beside report(run, {"report", "--html", page});
  ASSERT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), StartsWith("run " + id + ": world size 2, ddp: sh -c 'echo here; "));
  EXPECT_THAT(report.out(), HasSubstr("  ranks 0-1: spawned\n"));
  EXPECT_THAT(report.out(), HasSubstr("  rank 1: exited with code 3\n"));
  EXPECT_THAT(report.out(), HasSubstr("  rank 0: stopped by lrun: SIGTERM\n"));
  EXPECT_THAT(report.out(), HasSubstr("  the run ended: worker failed, exit code 3\n"));
  const std::string verdict = run.err().substr(run.err().find("lrun: note: rank 1 ran for "));
  EXPECT_THAT(report.out(), HasSubstr("\n\nlrun: error: rank 1 ")) << "the whole verdict";
  EXPECT_THAT(report.out(), HasSubstr("\nlrun: note: rank 1 printed last:\n"));
  EXPECT_THAT(report.out(), EndsWith("\n" + verdict)) << "does not end as the run did: " << verdict;
  std::ifstream file(page);
  std::string first_line;
  std::getline(file, first_line);
  EXPECT_EQ(first_line, "<!DOCTYPE html>");
  Beside to_stdout(run, {"report", "--html", "-"});
  ASSERT_EQ(to_stdout.wait().code, 0) << to_stdout.err();
  EXPECT_THAT(to_stdout.out(), StartsWith("<!DOCTYPE html>\n"));
  EXPECT_THAT(to_stdout.out(), EndsWith("</html>\n")) << "the page alone";
  const std::string rest((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(rest,
              HasSubstr("<a href=\"file://" + run.run_folder().string() + "/attempt_0/1/stderr.log\">stderr</a>"));
  EXPECT_THAT(rest, HasSubstr("</summary>\n<pre>run           " + id + "\n"));
  EXPECT_THAT(rest, AllOf(HasSubstr("TOKEN="), Not(HasSubstr("confidential")))) << "a page may be passed on";
}

TEST(Verbs, AMisspeltOneIsNamed) {
  LrunProcess lrun({"satus"});
  EXPECT_EQ(lrun.wait().code, 127);
  EXPECT_EQ(lrun.err(),
            "lrun: error: cannot run 'satus': No such file or directory\n"
            "lrun: hint: did you mean 'lrun status'?\n");
}

TEST(Report, OfALivingRunSaysThatItGoesOn) {
  LrunProcess run({"-n", "1", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(run.wait_for("[0] ready"));
  ASSERT_TRUE(has_socket(run));
  Beside report(run, {"report", run.run_folder().filename().string()});
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), EndsWith("lrun: note: the run goes on\n"));
}

TEST(Report, SaysOnWhatTheTimeOfAJobOfSeveralRunsWasSpent) {
  const TemporaryFolder folder;
  const std::string state = (folder / "state").string();
  const std::string program = "[ -e " + state + " ] || echo x > " + state + "; sleep 0.2; exit $1";
  const auto words = [&](const std::string& name, const std::string& code) {
    return std::vector<std::string>{
        "-n1", "--rdzv-id=" + name, "--max-restarts=1", "--checkpoint-path=" + state, "sh", "-c", program, "sh", code};
  };
  LrunProcess first(words("bert", "3"));
  ASSERT_EQ(first.wait().code, 3) << first.err();
  const std::string id = first.run_folder().filename().string();
  for (const char* const name : {"gpt", "bert", "bert"}) {
    Beside next(first, words(name, "0"));
    ASSERT_EQ(next.wait().code, 0) << next.err();
  }
  Beside alone(first, {"report", "--goodput"});
  ASSERT_EQ(alone.wait().code, 0) << alone.err();
  EXPECT_THAT(alone.out(), StartsWith("job bert: 1 start of the workers, ")) << "the run before it has succeeded";

  Beside report(first, {"report", "--goodput", id});
  ASSERT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), StartsWith("job bert: 2 runs, 3 starts of the workers, "));
  EXPECT_THAT(report.out(), AllOf(HasSubstr("\ngoodput "), HasSubstr(" failed\n"), EndsWith("  succeeded\n")));
  EXPECT_THAT(report.out(), Not(HasSubstr("no checkpoint is known")));

  Beside page(first, {"report", "--html", "-", id});
  ASSERT_EQ(page.wait().code, 0) << page.err();
  EXPECT_THAT(page.out(), HasSubstr("%, of 2 runs, 3 starts of the workers, "));
  Beside named(first, {"report", "--goodput", "--json", "bert"});
  ASSERT_EQ(named.wait().code, 0) << named.err();
  EXPECT_THAT(named.out(), HasSubstr("\"job\": \"bert\"")) << "of several runs of that name the newest is meant";
}

TEST(Report, ShowsWhenTheNewestCheckpointOfAnAttemptWasWritten) {
  LrunProcess run({"-n", "1", "sh", "-c", "sleep 0.1; echo x > $LRUN_MEMORY_DIR/state; exit 3"});
  ASSERT_EQ(run.wait().code, 3) << run.err();
  Beside report(run, {"report"});
  EXPECT_EQ(report.wait().code, 0) << report.err();
  EXPECT_THAT(report.out(), HasSubstr("  newest checkpoint, in memory\n"));
}

TEST(Report, AsksForAFileThatCanBeWritten) {
  LrunProcess run({"-n", "1", "true"});
  ASSERT_EQ(run.wait().code, 0);
  Beside report(run, {"report", "--html", "/no/such/folder/page.html"});
  EXPECT_EQ(report.wait().code, 125);
  EXPECT_EQ(report.err(),
            "lrun: error: cannot write '/no/such/folder/page.html': No such file or directory\n"
            "lrun: hint: name a file you may write to\n");
  const TemporaryFolder nothing;
  LrunProcess none({"report"}, {.environment = {{"LRUN_STATE", nothing.path().string()}}});
  EXPECT_EQ(none.wait().code, 125);
  EXPECT_THAT(none.err(), StartsWith("lrun: error: no run is kept in '"));
}

}  // namespace
}  // namespace lrun::test
