// The ten mistakes that a newcomer makes, as every launcher was measured with them: the cause in at most five lines of
// lrun's own, named once and by the first of them, within a second, with the right rank, pid and code. The
// eleventh, a node that is missing, needs several nodes.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/duration.h"
#include "support/lrun_process.h"
#include "support/with_more_time.h"

namespace lrun::test {
namespace {

/// What lrun itself says: not the workers' lines, nor what it quotes of them.
std::vector<std::string> own_lines(const LrunProcess& lrun) {
  std::vector<std::string> lines;
  std::istringstream text(lrun.err());
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("lrun: ")) lines.push_back(line);
  }
  return lines;
}

bool holds_all(const std::string& line, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (line.find(word) == std::string::npos) return false;
  }
  return true;
}

/// The pid that the rank has in events.jsonl, as a verdict writes it.
std::string pid_of(const LrunProcess& lrun, int rank) {
  std::ifstream events(lrun.run_folder() / "events.jsonl");
  std::string first;
  std::getline(events, first);
  const auto started = nlohmann::json::parse(first, nullptr, false);
  for (const auto& worker : started["workers"]) {
    if (worker["rank"] == rank) return "pid " + std::to_string(worker["pid"].get<int>()) + " on ";
  }
  return "no pid in " + first;
}

std::size_t count_holding(const std::vector<std::string>& lines, const std::string& word) {
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(word) != std::string::npos; }));
}

/// At most five lines. The first names the cause, within 80 columns, and no other does; one tells which process of rank
/// 1 it was.
void expect_told_well(const LrunProcess& lrun, const std::string& cause) {
  const std::vector<std::string> lines = own_lines(lrun);
  ASSERT_FALSE(lines.empty()) << "lrun said nothing";
  EXPECT_LE(lines.size(), 5U) << lrun.err();
  EXPECT_EQ(lines.front().find(cause), std::string_view("lrun: error: ").size()) << "first line: " << lines.front();
  EXPECT_LE(cause.size(), 80U);
  EXPECT_EQ(count_holding(lines, cause), 1U) << lrun.err();
  EXPECT_EQ(count_holding(lines, "local rank 1, " + pid_of(lrun, 1)), 1U) << lrun.err();
}

/// A refusal is an error, and perhaps a hint, and nothing else.
void expect_refused(const LrunProcess& lrun, const std::vector<std::string>& words) {
  const std::vector<std::string> lines = own_lines(lrun);
  ASSERT_FALSE(lines.empty()) << "lrun said nothing";
  EXPECT_LE(lines.size(), 2U) << lrun.err();
  EXPECT_TRUE(holds_all(lines.front(), words)) << lines.front();
  EXPECT_EQ(lrun.out(), "") << "nothing was started";
}

/// From the death of the first worker to the end of the run, in seconds, by lrun's own record.
double seconds_to_the_end(const LrunProcess& lrun) {
  std::ifstream events(lrun.run_folder() / "events.jsonl");
  double ended = 0;
  double last = 0;
  for (std::string line; std::getline(events, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    last = event["time"].get<double>();
    if (ended == 0 && event["event"] == "worker_ended") ended = last;
  }
  return last - ended;
}

void no_core_files() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

/// A second is promised by a machine that has nothing else to do; on another one it is enough that some run keeps to
/// it.
void expect_within_a_second(const LrunProcess& lrun, const std::vector<std::string>& words) {
  constexpr int kRuns = 8;
  double quickest = seconds_to_the_end(lrun);
  for (int run = 1; run < kRuns && quickest >= 1.0; ++run) {
    LrunProcess again(words, {.before_exec = no_core_files});
    (void)again.wait();
    quickest = std::min(quickest, seconds_to_the_end(again));
  }
  EXPECT_LT(quickest, 1.0) << "the quickest of " << kRuns;
}

/// Rank 1 of two does `what`, rank 0 works.
std::vector<std::string> rank_one(const std::string& what) {
  return {"-n", "2", "sh", "-c", "[ $RANK = 1 ] || exec sleep 1000; " + what};
}

TEST(TenMistakes, AProgramThatIsNotThere) {
  LrunProcess lrun({"-n", "2", "./no-such-program"});
  EXPECT_EQ(lrun.wait().code, 127);
  expect_refused(lrun, {"cannot run './no-such-program': No such file or directory"});
}

TEST(TenMistakes, AScriptThatIsNotThere) {
  LrunProcess lrun({"-n", "2", "no_such_script.py"});
  EXPECT_EQ(lrun.wait().code, 127);
  expect_refused(lrun, {"cannot run 'no_such_script.py': No such file or directory"});
}

TEST(TenMistakes, ARankThatExitsWithACode) {
  const std::vector<std::string> words = rank_one("exit 3");
  LrunProcess lrun(words, {.before_exec = no_core_files});
  EXPECT_EQ(lrun.wait().code, 3);
  expect_told_well(lrun, "rank 1 exited with code 3");
  expect_within_a_second(lrun, words);
}

TEST(TenMistakes, ARankThatCrashes) {
  const std::vector<std::string> words = rank_one("kill -s SEGV $$");
  LrunProcess lrun(words, {.before_exec = no_core_files});
  EXPECT_EQ(lrun.wait().code, 128 + SIGSEGV);
  expect_told_well(lrun, "rank 1 died of SIGSEGV (invalid memory access");
  expect_within_a_second(lrun, words);
}

TEST(TenMistakes, ARankThatIsKilled) {
  const std::vector<std::string> words = rank_one("kill -s KILL $$");
  LrunProcess lrun(words, {.before_exec = no_core_files});
  EXPECT_EQ(lrun.wait().code, 128 + SIGKILL);
  expect_told_well(lrun, "rank 1 died of SIGKILL");
  EXPECT_NE(lrun.err().find("kill"), std::string::npos) << lrun.err();
  expect_within_a_second(lrun, words);
}

TEST(TenMistakes, AnExceptionInOneRankAndItsEchoInTheOthers) {
  const TemporaryFolder folder;
  const std::string script = folder.script("train.py",
                                           "import os, time\n"
                                           "gone = os.path.dirname(__file__) + '/gone'\n"
                                           "if os.environ['RANK'] == '1':\n"
                                           "    open(gone, 'w').close()\n"
                                           "    raise ValueError('bad batch 2: shape (63, 784)')\n"
                                           "while not os.path.exists(gone):\n"
                                           "    time.sleep(0.01)\n"
                                           "raise RuntimeError('pair.cc:547 Connection closed by peer')\n");
  LrunProcess lrun({"-n", "4", script});
  EXPECT_EQ(lrun.wait().code, 1);
  expect_told_well(lrun, "rank 1 failed: ValueError: bad batch 2: shape (63, 784) at train.py:5 (exit 1)");
  expect_within_a_second(lrun, {"-n", "4", script});
}

/// A port of the kernel's choice that somebody listens on.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    number_ = ntohs(address.sin_port);
  }
  [[nodiscard]] std::string number() const { return std::to_string(number_); }

 private:
  Fd socket_;
  int number_ = 0;
};

TEST(TenMistakes, APortThatIsInUse) {
  const TakenPort port;
  LrunProcess lrun({"--master-port", port.number(), "-n", "2", "echo", "started"});
  EXPECT_EQ(lrun.wait().code, 125);
  expect_refused(lrun, {"cannot listen on 127.0.0.1:" + port.number() + ": Address already in use"});
}

TEST(TenMistakes, APortThatIsInUseWhereNodesAreToMeet) {
  const TakenPort port;
  LrunProcess lrun({"--num_nodes", "2", "--node-rank", "0", "--rdzv-endpoint", "127.0.0.1:" + port.number(), "true"});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_NE(lrun.err().find("cannot listen on 127.0.0.1:" + port.number() +
                            ": Address already in use\n"
                            "lrun: hint: name another port with '--rdzv-endpoint', on every node\n"),
            std::string::npos)
      << lrun.err();
}

TEST(TenMistakes, GpusWhereThereAreNone) {
  LrunProcess lrun({"--accelerator", "gpu", "-n", "2", "echo", "started"},
                   {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  if (lrun.wait().code != 125) GTEST_SKIP() << "there are GPUs here";
  expect_refused(lrun, {"'--accelerator gpu'", "has no GPU"});
}

TEST(TenMistakes, CtrlCWithWorkersThatIgnoreIt) {
  with_more_time([](int factor) -> std::string {
    const auto grace = 300ms * factor;
    LrunProcess lrun(
        {"-n", "2", "--grace", format_duration(grace), "sh", "-c", "trap '' INT TERM; echo armed; exec sleep 1000"});
    if (!lrun.wait_for("[0] armed") || !lrun.wait_for("[1] armed")) return "it does not start: " + lrun.err();
    const auto before = std::chrono::steady_clock::now();
    lrun.signal(SIGINT);
    EXPECT_EQ(lrun.wait().signal_number, SIGINT);
    const auto took = std::chrono::steady_clock::now() - before;
    EXPECT_EQ(count_holding(own_lines(lrun), "received SIGINT"), 1U) << lrun.err();
    EXPECT_LE(own_lines(lrun).size(), 3U) << lrun.err();
    EXPECT_NE(lrun.err().find("2 workers had to be killed after " + format_duration(grace)), std::string::npos)
        << lrun.err();
    return took < grace + 1s * factor ? "" : "more than one grace for all, and a second";
  });
}

TEST(TenMistakes, KillOfTheLauncher) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo armed; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[0] armed") && lrun.wait_for("[1] armed"));
  ASSERT_EQ(::kill(lrun.launcher_pid(), SIGKILL), 0);
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_TRUE(eventually([&] { return lrun.processes().empty(); })) << "workers live on";
  ASSERT_EQ(own_lines(lrun).size(), 1U) << lrun.err();
  EXPECT_TRUE(holds_all(own_lines(lrun)[0], {"lrun itself died of SIGKILL", "all workers were ended"}));
}

}  // namespace
}  // namespace lrun::test
