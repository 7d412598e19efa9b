#include "verdict/explain.h"

#include <gtest/gtest.h>

#include <csignal>

#include "verdict/hint_table.h"

namespace lrun {
namespace {

using Ending = FailureRecord::Ending;

FailureRecord explained(Ending ending, int value, const EndFacts& facts = {}, int stop_signal = 0) {
  FailureRecord record;
  record.ending = ending;
  record.value = value;
  record.stop_signal = stop_signal;
  explain(record, facts);
  return record;
}

TEST(Explain, TellsSuccessErrorSignalAndStopApart) {
  EXPECT_EQ(explained(Ending::kExited, 0).cause, Cause::kSucceeded);
  EXPECT_EQ(explained(Ending::kExited, 3).cause, Cause::kOwnError);
  EXPECT_EQ(explained(Ending::kSignaled, SIGSEGV).cause, Cause::kFatalSignal);
  EXPECT_EQ(explained(Ending::kSignaled, SIGTERM, {}, SIGTERM).cause, Cause::kStoppedByLrun);
  EXPECT_EQ(explained(Ending::kExecFailed, 2).cause, Cause::kExecFailed);
  EXPECT_EQ(explained(Ending::kLost, 0).cause, Cause::kLost);
}

TEST(Explain, KeepsTheReasonOfAChildThatCouldStartNone) {
  const std::vector<std::string> lines{"RuntimeError: ",
                                       "        An attempt has been made to start a new process before the",
                                       "        current process has finished its bootstrapping phase.",
                                       "",
                                       "Traceback (most recent call last):",
                                       "  File \"a.py\", line 4, in <module>",
                                       "    assert p.exitcode == 0",
                                       "AssertionError"};
  const FailureRecord record = explained(Ending::kExited, 1, {.last_lines = lines, .error_lines = lines});
  EXPECT_EQ(record.error, "AssertionError");
  ASSERT_GE(record.evidence.size(), 3U);
  EXPECT_EQ(record.evidence[0], lines[1]);
  EXPECT_EQ(record.evidence[1], lines[2]) << "as they were printed";
  EXPECT_EQ(record.evidence.back(), lines.back());
  EXPECT_NE(hint_for(record).find("'if __name__ == \"__main__\":'"), std::string::npos) << hint_for(record);
}

TEST(Explain, BlamesTheOutOfMemoryKillerForASigkillThatTheCgroupCounted) {
  const EndFacts facts{.memory_kills = 1, .memory_kills_are_ours = true, .memory_limit_bytes = 64 << 20};
  const FailureRecord record = explained(Ending::kSignaled, SIGKILL, facts);
  EXPECT_EQ(record.cause, Cause::kOutOfMemory);
  EXPECT_EQ(record.describe(), "was killed by the kernel's out-of-memory killer (memory limit 64 MiB)");
}

TEST(Explain, SaysProbablyWhenOnlyTheMachineCountedAKill) {
  const FailureRecord record = explained(Ending::kSignaled, SIGKILL, {.memory_kills = 1});
  EXPECT_EQ(record.cause, Cause::kProbablyOutOfMemory);
  EXPECT_EQ(record.describe(), "was killed, probably by the kernel's out-of-memory killer");
}

TEST(Explain, TellsHowMuchMemoryAWorkerHadThatWasKilledForIt) {
  const auto words = [](const EndFacts& facts) {
    FailureRecord record;
    record.ending = Ending::kSignaled;
    record.value = SIGKILL;
    record.peak_memory_kib = 63'000;
    explain(record, facts);
    return record.describe();
  };
  EXPECT_EQ(words({.memory_kills = 1, .memory_kills_are_ours = true, .memory_limit_bytes = 64 << 20}),
            "was killed by the kernel's out-of-memory killer (memory limit 64 MiB, peak memory 61.5 MiB)");
  EXPECT_EQ(words({.memory_kills = 1}),
            "was killed, probably by the kernel's out-of-memory killer (peak memory 61.5 MiB)");
  EXPECT_EQ(words({}), "died of SIGKILL (killed from outside)");
}

TEST(Explain, SeesTheOutOfMemoryKillBehindAShell) {
  EXPECT_EQ(explained(Ending::kExited, 137, {.memory_kills = 1, .memory_kills_are_ours = true}).cause,
            Cause::kOutOfMemory);
  EXPECT_EQ(explained(Ending::kExited, 137).cause, Cause::kOwnError);
  EXPECT_EQ(explained(Ending::kExited, 137).describe(), "exited with code 137: a shell's exit code for SIGKILL");
}

TEST(Explain, BlamesNoMemoryForLrunsOwnKillNorForOtherSignals) {
  const EndFacts facts{.memory_kills = 1, .memory_kills_are_ours = true};
  EXPECT_EQ(explained(Ending::kSignaled, SIGKILL, facts, SIGKILL).cause, Cause::kStoppedByLrun);
  EXPECT_EQ(explained(Ending::kSignaled, SIGSEGV, facts).cause, Cause::kFatalSignal);
}

TEST(Explain, BlamesAFullSharedMemoryForABusError) {
  const EndFacts facts{.shared_memory_full = true, .shared_memory_bytes = 64 << 20};
  const FailureRecord record = explained(Ending::kSignaled, SIGBUS, facts);
  EXPECT_EQ(record.cause, Cause::kSharedMemoryFull);
  EXPECT_EQ(record.describe(), "died of SIGBUS (bus error): /dev/shm is full (64 MiB)");
  EXPECT_EQ(explained(Ending::kSignaled, SIGBUS).cause, Cause::kFatalSignal);
}

TEST(Explain, NamesTheLimitOfCpuTimeThatWasUsedUp) {
  const EndFacts facts{.cpu_limit_seconds = 90};
  const FailureRecord killed = explained(Ending::kSignaled, SIGKILL, facts);
  EXPECT_EQ(killed.cause, Cause::kCpuTimeLimit);
  EXPECT_EQ(killed.describe(), "was killed by the kernel: it used up its CPU time limit of 90s");
  EXPECT_NE(hint_for(killed).find("'ulimit -t'"), std::string::npos) << hint_for(killed);
  EXPECT_EQ(explained(Ending::kSignaled, SIGXCPU, facts).cause, Cause::kCpuTimeLimit);
  EXPECT_EQ(explained(Ending::kExited, 137, facts).describe(),
            "exited with code 137: one of its processes used up its CPU time limit of 90s");
  EXPECT_EQ(explained(Ending::kSignaled, SIGSEGV, facts).cause, Cause::kFatalSignal);
  EXPECT_EQ(explained(Ending::kSignaled, SIGKILL, facts, SIGKILL).cause, Cause::kStoppedByLrun);
  const EndFacts both{.memory_kills = 1, .memory_kills_are_ours = true, .cpu_limit_seconds = 90};
  EXPECT_EQ(explained(Ending::kSignaled, SIGKILL, both).cause, Cause::kOutOfMemory) << "its cgroup counts";
}

TEST(Explain, NamesAFullFolderOfItsOutput) {
  const EndFacts facts{.full_folder = "/logs/attempt_0"};
  const FailureRecord record = explained(Ending::kExited, 1, facts);
  EXPECT_EQ(record.cause, Cause::kOwnError);
  EXPECT_EQ(record.describe(), "exited with code 1: no space is left in '/logs/attempt_0' for its output");
  EXPECT_NE(hint_for(record).find("'--log-dir'"), std::string::npos) << hint_for(record);
  EXPECT_EQ(explained(Ending::kExited, 1, facts, SIGTERM).cause, Cause::kStoppedByLrun);
}

TEST(Explain, SaysOfASignalThatLrunPassedItOn) {
  EXPECT_EQ(explained(Ending::kSignaled, SIGUSR2, {.passed_on = true}).describe(),
            "died of SIGUSR2: sent to lrun and passed on; the program does not handle it");
  EXPECT_EQ(explained(Ending::kSignaled, SIGUSR2).describe(), "died of SIGUSR2");
}

TEST(Explain, SeesAVictimInAWatchdogsAbort) {
  const EndFacts facts{.last_lines = {"[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
                                      "terminate called after throwing an instance of 'std::runtime_error'",
                                      "  what():  [Rank 2] taken down"}};
  EXPECT_EQ(explained(Ending::kSignaled, SIGABRT, facts).cause, Cause::kWatchdogAbort);
}

TEST(Explain, SeesAVictimInATimeoutOfGlooAndOfLiblrun) {
  EXPECT_EQ(explained(Ending::kExited, 1,
                      {.last_lines = {"RuntimeError: Timed out waiting 1000ms for recv operation to complete"}})
                .cause,
            Cause::kWatchdogAbort);
  EXPECT_EQ(explained(Ending::kSignaled, SIGABRT,
                      {.last_lines = {"terminate called after throwing an instance of 'lrun::CollectiveTimeout'",
                                      "  what():  all_reduce 3: rank 1 is missing"}})
                .cause,
            Cause::kWatchdogAbort);
}

TEST(Explain, SeesAVictimInAWaitForRanksThatNeverCame) {
  for (const char* const error :
       {"torch.distributed.DistStoreError: wait timeout after 4000ms, keys: /default_pg/0//cpu//0/1",
        "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 1/2 clients joined.",
        "RuntimeError: Ranks 1 failed to pass monitoredBarrier in 5000 ms"}) {
    EXPECT_EQ(explained(Ending::kExited, 1,
                        {.last_lines = {"Traceback (most recent call last):", "  File \"a.py\", line 1, in f", error}})
                  .cause,
              Cause::kWatchdogAbort)
        << error;
  }
}

TEST(Explain, SeesNoVictimInAWatchdogThatEndedForAnErrorOfItsOwn) {
  EXPECT_EQ(explained(Ending::kSignaled, SIGABRT,
                      {.last_lines = {"Process group watchdog thread terminated with exception: CUDA error: an illegal "
                                      "memory access was encountered"}})
                .cause,
            Cause::kFatalSignal);
}

TEST(Explain, SeesAVictimInALostPeer) {
  EXPECT_EQ(explained(Ending::kExited, 1,
                      {.last_lines = {"Traceback (most recent call last):", "  File \"a.py\", line 1, in f",
                                      "RuntimeError: [pair.cc:547] Connection closed by peer [127.0.0.1]:1"}})
                .cause,
            Cause::kPeerLost);
  EXPECT_EQ(explained(Ending::kSignaled, SIGABRT,
                      {.last_lines = {"terminate called after throwing an instance of 'lrun::PeerLost'",
                                      "  what():  rank 1 (pid 7) ended in all_reduce"}})
                .cause,
            Cause::kPeerLost);
  EXPECT_EQ(explained(Ending::kExited, 1, {.last_lines = {"error: rank 1 (pid 7) ended during all_reduce 3"}}).cause,
            Cause::kPeerLost)
      << "a program that catches what liblrun throws and prints it";
}

TEST(Explain, SeesNoVictimWhereAProcessOfTheProgramItselfIsGone) {
  EXPECT_EQ(
      explained(Ending::kExited, 1,
                {.last_lines = {"Traceback (most recent call last):", "  File \"train.py\", line 9, in <module>",
                                "  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 378, in _recv",
                                "ConnectionResetError: [Errno 104] Connection reset by peer"}})
          .cause,
      Cause::kOwnError);
}

TEST(Explain, SeesNoVictimInAnEarlierWarning) {
  EXPECT_EQ(explained(Ending::kExited, 1,
                      {.last_lines = {"warning: Connection reset by peer, trying again",
                                      "Traceback (most recent call last):", "  File \"a.py\", line 1, in f",
                                      "ValueError: bad"}})
                .cause,
            Cause::kOwnError);
}

TEST(Explain, FindsTheErrorOnStderrBelowWhatStdoutHeldBack) {
  const std::vector<std::string> error{"Traceback (most recent call last):", "  File \"a.py\", line 1, in f",
                                       "ValueError: bad"};
  std::vector<std::string> all = error;
  for (int i = 0; i < 60; ++i) all.push_back("step " + std::to_string(i));
  EXPECT_EQ(explained(Ending::kExited, 1, {.last_lines = all, .error_lines = error}).error, "ValueError: bad");
  EXPECT_EQ(explained(Ending::kExited, 3, {.last_lines = all, .error_lines = error}).error, "")
      << "an interpreter that ends of an exception exits with 1";
}

TEST(Explain, TakesTheProgramsOwnWordsWhereItChoseToEnd) {
  const std::vector<std::string> lines{"train: error: no data"};
  EXPECT_EQ(explained(Ending::kExited, 2, {.last_lines = lines, .error_lines = lines}).error, lines.front());
  EXPECT_EQ(explained(Ending::kExited, 2, {.last_lines = lines, .error_lines = lines}).describe(),
            "exited with code 2");
  EXPECT_EQ(explained(Ending::kExited, 2, {.last_lines = lines}).error, "") << "on stdout it may be anything";
  EXPECT_EQ(explained(Ending::kSignaled, SIGSEGV, {.last_lines = lines, .error_lines = lines}).error, "");
  EXPECT_EQ(explained(Ending::kExited, 128, {.last_lines = lines, .error_lines = lines}).error, lines.front());
  EXPECT_EQ(explained(Ending::kExited, 139, {.last_lines = lines, .error_lines = lines}).error, "");
}

TEST(Explain, SeesTheVictimBehindItsOwnWords) {
  const std::vector<std::string> lines{"Connection closed by peer", "train: error: cannot go on"};
  const FailureRecord record = explained(Ending::kExited, 1, {.last_lines = lines, .error_lines = lines});
  EXPECT_EQ(record.cause, Cause::kPeerLost);
  EXPECT_EQ(record.error, "");
}

TEST(Explain, SeesNoVictimInATimeoutThatWasOvercome) {
  std::vector<std::string> lines{"Watchdog caught collective operation timeout (recovered)"};
  for (int i = 0; i < 10; ++i) lines.push_back("step " + std::to_string(i));
  lines.emplace_back("FATAL: bad configuration");
  EXPECT_EQ(explained(Ending::kExited, 4, {.last_lines = lines}).cause, Cause::kOwnError);
  EXPECT_EQ(explained(Ending::kSignaled, SIGABRT, {.last_lines = lines}).cause, Cause::kWatchdogAbort)
      << "a watchdog aborts";
}

TEST(Explain, PrefersTheWorkersErrorFile) {
  ErrorFile file;
  file.message = "ValueError: bad\nmore";
  file.call_stack = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nValueError: bad\n";
  file.time = 1'700'000'000;
  const FailureRecord record = explained(
      Ending::kExited, 1, {.last_lines = {"noise"}, .error_file = file, .error_file_path = "/run/0/error.json"});
  EXPECT_EQ(record.error, "ValueError: bad");
  EXPECT_EQ(record.location, "a.py:3 in f");
  EXPECT_EQ(record.error_file, "/run/0/error.json");
  EXPECT_EQ(record.error_time, 1'700'000'000);
  EXPECT_EQ(record.evidence, (std::vector<std::string>{"  File \"a.py\", line 3, in f", "    g()", "ValueError: bad"}));
}

TEST(Explain, ReadsNothingIntoASuccess) {
  const FailureRecord record = explained(Ending::kExited, 0, {.last_lines = {"double free or corruption"}});
  EXPECT_EQ(record.error, "");
  EXPECT_TRUE(record.evidence.empty());
}

}  // namespace
}  // namespace lrun
