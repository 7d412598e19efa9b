#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/fuse_mount.h"
#include "support/lrun_process.h"

namespace lrun::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<nlohmann::json> events_of(const fs::path& run, const std::string& name) {
  std::vector<nlohmann::json> found;
  std::ifstream in(run / "events.jsonl");
  for (std::string line; std::getline(in, line);) {
    nlohmann::json event = nlohmann::json::parse(line);
    if (event.at("event") == name) found.push_back(std::move(event));
  }
  return found;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Restart, ARunThatFailsOnceSucceeds) {
  LrunProcess lrun({"-n", "4", "--max-restarts", "3", "sh", "-c",
                    "echo attempt $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS port $MASTER_PORT; "
                    "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 2 ] && exit 7; exec sleep 1000"});
  const LrunEnd end = lrun.wait();
  EXPECT_EQ(end.code, 0) << lrun.err();
  EXPECT_GE(count_of(lrun.out(), "attempt 0 of 3"), 1U) << lrun.out();
  EXPECT_EQ(count_of(lrun.out(), "attempt 1 of 3"), 4U) << lrun.out();
  EXPECT_NE(lrun.err().find("lrun: error: rank 2 exited with code 7"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("restart 1 of 3"), std::string::npos) << lrun.err();
  const std::string port = lrun.out().substr(lrun.out().find("port "), 10);
  EXPECT_EQ(count_of(lrun.out(), port.substr(0, port.find('\n'))), count_of(lrun.out(), "port "))
      << "the store keeps its port: " << lrun.out();
}

TEST(Restart, EachAttemptHasItsFolderItsEventsAndItsPlaceInTheResult) {
  LrunProcess lrun({"-n", "1", "--max-restarts", "1", "sh", "-c",
                    "echo in $TORCHELASTIC_RESTART_COUNT; exit $((3 + TORCHELASTIC_RESTART_COUNT))"});
  EXPECT_EQ(lrun.wait().code, 4) << lrun.err();
  const fs::path run = lrun.run_folder();
  EXPECT_EQ(text_of(run / "attempt_0" / "0" / "stdout.log"), "in 0\n");
  EXPECT_EQ(text_of(run / "attempt_1" / "0" / "stdout.log"), "in 1\n");
  EXPECT_EQ(events_of(run, "restarting").size(), 1U);
  ASSERT_EQ(events_of(run, "attempt_started").size(), 1U);
  EXPECT_EQ(events_of(run, "attempt_started").front().at("attempt"), 1);
  const nlohmann::json result = nlohmann::json::parse(text_of(run / "result.json"));
  EXPECT_EQ(result.at("restarts"), 1);
  EXPECT_EQ(result.at("culprit").at("attempt"), 1);
  EXPECT_NE(lrun.err().find("restarted once, as often as allowed"), std::string::npos) << lrun.err();
}

TEST(Restart, WhatFailsTwiceInTheSameWayIsNotTriedAgain) {
  LrunProcess lrun({"-n", "2", "--max-restarts", "9", "--restart-backoff", "1000s", "sh", "-c",
                    "echo \"cannot open $$.bin\" >&2; exit 5"});
  EXPECT_EQ(lrun.wait().code, 5) << lrun.err();
  EXPECT_NE(lrun.err().find("restarted once; not again"), std::string::npos) << lrun.err();
}

TEST(Restart, IsNotCountedWhereTheCheckpointIsNewer) {
  const TemporaryFolder folder;
  // Four attempts save, each with a later time, and the last two do not.
  LrunProcess lrun({"-n", "2", "--max-restarts", "1", "--restart-backoff", "0", "--checkpoint-path", folder / "step_*",
                    "sh", "-c",
                    "[ $RANK = 0 ] || exec sleep 1000; n=$TORCHELASTIC_RESTART_COUNT; if [ $n -lt 4 ]; then "
                    "echo $n > $0/new; touch -d @$((n + 1)) $0/new; mv $0/new $0/step_$n; fi; kill -KILL $$",
                    folder.path()});
  EXPECT_EQ(lrun.wait().code, 128 + SIGKILL) << lrun.err();
  EXPECT_NE(lrun.err().find("restart 1 of 1"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("restart 4 (1 of 1 since the newest checkpoint)"), std::string::npos) << lrun.err();
  EXPECT_EQ(lrun.err().find("restart 5"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("restarted 4 times; not again, because the last one brought no newer checkpoint in '" +
                            (folder / "step_*").string() + "'"),
            std::string::npos)
      << lrun.err();
}

TEST(Restart, IsNotCountedWhereWorkersSaveInMemory) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "1", "--max-restarts", "1", "--restart-backoff", "0", "--checkpoint-path", folder / "none",
                    "sh", "-c",
                    "n=$TORCHELASTIC_RESTART_COUNT; [ $n = 3 ] && exit 0; echo $n > $LRUN_MEMORY_DIR/state; "
                    "touch -d @$((n + 1)) $LRUN_MEMORY_DIR/state; kill -KILL $$"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
}

TEST(Restart, IsCountedWhereOnlyLrunItselfWritesBesideTheCheckpoints) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "1", "--max-restarts", "2", "--restart-backoff", "0", "--checkpoint-path", folder.path(),
                    "--log-dir", folder / "logs", "sh", "-c",
                    "[ $TORCHELASTIC_RESTART_COUNT = 5 ] && exit 0; echo $TORCHELASTIC_RESTART_COUNT; kill -KILL $$"},
                   {.environment = {{"XDG_STATE_HOME", (folder / "state").string()}}});
  EXPECT_EQ(lrun.wait().code, 128 + SIGKILL) << lrun.err();
  EXPECT_NE(lrun.err().find("restart 1 of 2; there is no checkpoint in '"), std::string::npos) << lrun.err();
  EXPECT_NE(lrun.err().find("because the last 2 brought no newer checkpoint"), std::string::npos) << lrun.err();
}

TEST(Restart, DoesNotWaitForAFileServerWhenTheRunIsEnded) {
  const Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device || ::geteuid() != 0) GTEST_SKIP() << "only root can mount FUSE here";
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "silent");
  LrunProcess lrun(
      {"-n", "1", "--max-restarts", "9", "--checkpoint-path", folder / "silent/state", "sh", "-c", "echo $$; exit 7"},
      {.before_exec = [&] { mount_fuse(device, folder / "silent"); }});
  ASSERT_TRUE(lrun.read_until([&] { return lrun.out().ends_with('\n'); }));
  const pid_t worker = std::stoi(lrun.out().substr(lrun.out().find(' ')));
  EXPECT_TRUE(eventually([&] {
    const std::vector<pid_t> children = lrun.workers();
    return children.size() == 1 && children.front() != worker;
  })) << "a process looks for checkpoints";
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().code, 7) << lrun.err();
  EXPECT_EQ(lrun.err().find("restart 1"), std::string::npos) << lrun.err();
}

TEST(Restart, TorchrunRepeatsEverythingAtOnce) {
  LrunProcess lrun({"--compat=torchrun", "--no-python", "--max-restarts=3", "sh", "-c", "echo again; exit 5"});
  EXPECT_EQ(lrun.wait().code, 5) << lrun.err();
  EXPECT_EQ(count_of(lrun.out(), "again"), 4U) << lrun.out();
}

TEST(Restart, ASignalDuringTheBackoffEndsTheRun) {
  LrunProcess lrun({"-n", "1", "--max-restarts", "9", "--restart-backoff", "1000s", "sh", "-c",
                    "exit $((3 + TORCHELASTIC_RESTART_COUNT))"});
  ASSERT_TRUE(lrun.wait_for("restart 2 of 9 in 1000s")) << lrun.err();
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
  EXPECT_NE(lrun.err().find("the run was stopped: received SIGTERM"), std::string::npos) << lrun.err();
}

TEST(Restart, ASignalWhileTheOthersAreStoppedIsNotFollowedByARestart) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "2", "--max-restarts", "9", "--grace", "1000s", "sh", "-c",
                    "if [ $RANK = 1 ]; then until [ -e $0 ]; do sleep 0.01; done; exit 3; fi; "
                    "trap 'echo stopping' TERM; touch $0; while :; do sleep 0.01; done",
                    folder.path() / "armed"});
  ASSERT_TRUE(lrun.wait_for("[0] stopping"));
  lrun.signal(SIGINT);
  EXPECT_EQ(lrun.wait().code, 3) << "the failure stays the reason";
  EXPECT_EQ(lrun.err().find("restart 1"), std::string::npos) << lrun.err();
}

TEST(Restart, OneThatCannotStartLeavesTheLastAttemptsVerdict) {
  const TemporaryFolder folder;
  const std::string logs = folder.path() / "logs";
  LrunProcess lrun({"-n", "1", "--max-restarts", "2", "-r", "3", "--log-dir", logs, "sh", "-c",
                    "rm -r \"$0\"; touch \"$0\"; exit 3", logs});
  EXPECT_EQ(lrun.wait().code, 3) << lrun.err();
  EXPECT_NE(lrun.err().find("lrun: warning: no further attempt can start: cannot make the folder '" + logs),
            std::string::npos)
      << lrun.err();
  EXPECT_NE(lrun.err().find("exited with code 3"), std::string::npos) << lrun.err();
  EXPECT_EQ(events_of(lrun.run_folder(), "run_ended").size(), 1U);
  const nlohmann::json result = nlohmann::json::parse(text_of(lrun.run_folder() / "result.json"));
  EXPECT_EQ(result.at("exit_code"), 3);
  EXPECT_EQ(result.at("restarts"), 0);
}

TEST(Restart, WhatKeepsLrunFromStartingIsAResultToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "a folder that may be written to and takes no folders is needed: root's /proc";
  LrunProcess lrun({"-n", "1", "-r", "3", "--log-dir", "/proc", "true"});
  EXPECT_EQ(lrun.wait().code, 125) << lrun.err();
  EXPECT_EQ(lrun.err().rfind("lrun: error: cannot make the folder '/proc/", 0), 0U) << lrun.err();
  const nlohmann::json result = nlohmann::json::parse(text_of(lrun.run_folder() / "result.json"), nullptr, false);
  EXPECT_EQ(result["exit_code"], 125);
  EXPECT_EQ(result["text"], lrun.err());
}

TEST(Restart, NothingOfTheLastAttemptLivesWhenTheNextBegins) {
  LrunProcess lrun({"-n", "2", "--max-restarts", "1", "sh", "-c",
                    "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then setsid sleep 4321 & [ $RANK = 1 ] && exit 3; "
                    "wait; exit 0; fi; echo second; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[0] second") && lrun.wait_for("[1] second"));
  EXPECT_TRUE(eventually([&] { return lrun.workers().size() == 2; }))  // one that becomes 'sleep' is not seen
      << "a grandchild with a session of its own was left";
  lrun.signal(SIGTERM);
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

TEST(Restart, ShellsWithProgramsBehindThemLeaveNothingToWaitFor) {
  for (int round = 0; round < 8; ++round) {
    LrunProcess lrun({"-n", "8", "--grace", "1000s", "sh", "-c", "[ $RANK = 1 ] && exit 3; sleep 1000; true"});
    EXPECT_EQ(lrun.wait().code, 3) << "round " << round << ": " << lrun.err();
  }
}

}  // namespace
}  // namespace lrun::test
