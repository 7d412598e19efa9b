#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "support/lrun_process.h"

namespace lrun::test {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(Launch, GivesEveryWorkerItsRankAndEndsWithZero) {
  LrunProcess lrun({"--devices", "3", "sh", "-c", "echo $RANK $LOCAL_RANK $WORLD_SIZE $NODE_RANK $MASTER_ADDR \"$@\"",
                    "x", "--devices", "9"});
  const LrunEnd end = lrun.wait();
  EXPECT_TRUE(end.exited && end.code == 0) << lrun.err();
  EXPECT_EQ(sorted_lines(lrun.out()),
            (std::vector<std::string>{"[0] 0 0 3 0 127.0.0.1 --devices 9", "[1] 1 1 3 0 127.0.0.1 --devices 9",
                                      "[2] 2 2 3 0 127.0.0.1 --devices 9"}));
  EXPECT_EQ(lrun.err(), "") << "lrun itself has nothing to say about a success";
}

TEST(Launch, KeepsStandardStreamsApartAndInAFileARank) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo to-out-$RANK; echo to-err-$RANK >&2"});
  lrun.wait();
  EXPECT_EQ(sorted_lines(lrun.out()), (std::vector<std::string>{"[0] to-out-0", "[1] to-out-1"}));
  EXPECT_EQ(sorted_lines(lrun.err()), (std::vector<std::string>{"[0] to-err-0", "[1] to-err-1"}));
  const auto logs = lrun.run_folder() / "attempt_0";
  EXPECT_EQ(contents(logs / "1" / "stdout.log"), "to-out-1\n");
  EXPECT_EQ(contents(logs / "0" / "stderr.log"), "to-err-0\n");
}

TEST(Launch, PutsLogFilesWhereTheUserSays) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "1", "--log-dir", folder.path().string(), "echo", "hello"});
  lrun.wait();
  const auto log = folder.path() / lrun.run_folder().filename() / "attempt_0" / "0" / "stdout.log";
  EXPECT_EQ(contents(log), "hello\n");
}

TEST(Launch, GivesWorkersNoInput) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "cat; readlink /proc/self/fd/0"});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_EQ(sorted_lines(lrun.out()), (std::vector<std::string>{"[0] /dev/null", "[1] /dev/null"}));
}

TEST(Launch, ServesAStoreOnTheAddressItAnnounces) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo port $MASTER_PORT; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[1] port "));
  const auto at = lrun.out().find("port ") + 5;
  const int port = std::stoi(lrun.out().substr(at));
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  // VALIDATE, PING 7 (store-protocol: both are answered by the four bytes of the nonce)
  const unsigned char hello[] = {0x00, 0xce, 0xf7, 0x85, 0x3c, 0x0d, 7, 0, 0, 0};
  ASSERT_EQ(::send(socket.get(), hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
  unsigned char answer[4] = {};
  ASSERT_EQ(::recv(socket.get(), answer, sizeof answer, MSG_WAITALL), 4);
  EXPECT_EQ(answer[0], 7);
  lrun.signal(SIGTERM);
  lrun.wait();
}

TEST(Launch, SaysInOneLineThatAPortIsTaken) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  LrunProcess lrun({"--master-port", port, "-n", "2", "true"});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_NE(lrun.err().find(port), std::string::npos) << lrun.err();
  EXPECT_EQ(std::count(lrun.err().begin(), lrun.err().end(), '\n'), 2) << lrun.err();
}

TEST(Launch, RunsTwoHundredAndFiftySixWorkers) {
  LrunProcess lrun({"-n", "256", "/bin/true"});
  const LrunEnd end = lrun.wait();
  EXPECT_TRUE(end.exited && end.code == 0) << lrun.err();
  const auto result = nlohmann::json::parse(contents(lrun.run_folder() / "result.json"));
  EXPECT_EQ(result["workers"].size(), 256U);
}

TEST(Launch, TwoRunsAtOnceDoNotMeet) {
  LrunProcess first({"-n", "2", "sh", "-c", "echo ready $MASTER_PORT; exec sleep 1000"});
  LrunProcess second({"-n", "2", "sh", "-c", "echo ready $MASTER_PORT; exec sleep 1000"});
  ASSERT_TRUE(first.wait_for("[1] ready") && second.wait_for("[1] ready"));
  const auto port = [](const std::string& out) { return out.substr(out.find("ready ") + 6, 5); };
  EXPECT_NE(port(first.out()), port(second.out()));
  first.signal(SIGTERM);
  first.wait();
  EXPECT_TRUE(eventually([&] { return second.workers().size() == 2; })) << "the end of one run touched the other";
  second.signal(SIGTERM);
  second.wait();
}

TEST(Launch, RaisesItsOwnFileLimitAndGivesWorkersTheOriginal) {
  LrunProcess lrun({"-n", "64", "sh", "-c", "ulimit -Sn"}, {.before_exec = [] {
                     rlimit limit{};
                     ::getrlimit(RLIMIT_NOFILE, &limit);
                     limit.rlim_cur = 128;
                     ::setrlimit(RLIMIT_NOFILE, &limit);
                   }});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  const auto lines = sorted_lines(lrun.out());
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.ends_with(" 128"); }),
            64);
}

TEST(Launch, SaysBeforeTheStartThatTooFewDescriptorsAreAllowed) {
  LrunProcess lrun({"-n", "64", "sh", "-c", "echo started"}, {.before_exec = [] {
                     const rlimit limit{100, 100};
                     ::setrlimit(RLIMIT_NOFILE, &limit);
                   }});
  EXPECT_EQ(lrun.wait().code, 125);
  EXPECT_NE(lrun.err().find("file descriptors"), std::string::npos) << lrun.err();
  EXPECT_EQ(lrun.out(), "") << "nothing may be started";
}

TEST(Launch, RunsPythonFilesWithPython) {
  const TemporaryFolder folder;
  const std::string script =
      folder.script("train.py", "import os, sys\nprint(os.environ['RANK'], sys.argv[1:])\n", false);
  LrunProcess lrun({"-n", "2", script, "--lr", "3"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(sorted_lines(lrun.out()), (std::vector<std::string>{"[0] 0 ['--lr', '3']", "[1] 1 ['--lr', '3']"}));
}

TEST(Launch, UnderTorchrunsNameHasTorchrunsDefaults) {
  const TemporaryFolder folder;
  const std::string worker = folder.script(  // one write each: nobody puts lines together here
      "worker", "import os\nos.write(1, f\"rank {os.environ['RANK']} {os.environ['OMP_NUM_THREADS']}\\n\".encode())\n");
  LrunProcess lrun({"--compat=torchrun", "--nproc-per-node", "2", worker});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(sorted_lines(lrun.out()), (std::vector<std::string>{"rank 0 1", "rank 1 1"}))
      << "no prefix, Python, one thread";
}

TEST(Launch, SaysWhereSeveralNodesMayMeetAndPlansThem) {
  LrunProcess refused({"--devices", "8", "--num_nodes", "4", "true"});
  EXPECT_EQ(refused.wait().code, 125);
  EXPECT_EQ(refused.out(), "");
  EXPECT_NE(refused.err().find("--rdzv-endpoint HOST:29500"), std::string::npos) << refused.err();
  LrunProcess planned({"--devices", "8", "--num_nodes", "4", "--strategy", "ddp", "--dry-run=json", "./train"});
  EXPECT_EQ(planned.wait().code, 0) << planned.err();
  EXPECT_EQ(nlohmann::json::parse(planned.out())["world_size"], 32);
}

TEST(Launch, AnswersOnItsControlSocketAndStopsWhenAsked) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[1] ready"));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(lrun.run_folder() / "control.sock"); }));
  const auto ask = [&](const std::string& command) {
    const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (lrun.run_folder() / "control.sock").string().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_GT(::send(socket.get(), command.data(), command.size(), 0), 0);
    char answer[4096] = {};
    EXPECT_GT(::recv(socket.get(), answer, sizeof answer - 1, 0), 0);
    return nlohmann::json::parse(answer);
  };
  const auto status = ask("status\n");
  EXPECT_EQ(status["world_size"], 2);
  EXPECT_EQ(status["workers"].size(), 2U);
  EXPECT_TRUE(status["workers"][0]["running"]);
  EXPECT_TRUE(ask("bogus\n").contains("error"));
  ask("stop\n");
  EXPECT_EQ(lrun.wait().signal_number, SIGTERM);
}

TEST(Launch, WritesEventsAndResultForPrograms) {
  LrunProcess lrun({"-n", "2", "sh", "-c", "exit $((RANK * 4))"});
  lrun.wait();
  std::set<std::string> events;
  std::istringstream lines(contents(lrun.run_folder() / "events.jsonl"));
  for (std::string line; std::getline(lines, line);) events.insert(nlohmann::json::parse(line)["event"]);
  EXPECT_EQ(events, (std::set<std::string>{"run_started", "worker_ended", "stopping", "run_ended"}));
  const auto result = nlohmann::json::parse(contents(lrun.run_folder() / "result.json"));
  EXPECT_EQ(result["exit_code"], 4);
  EXPECT_EQ(result["culprit"]["rank"], 1);
  struct stat status {};
  ASSERT_EQ(::stat(lrun.run_folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST(Launch, TakesNoDescriptorOfItsOwnForAConsoleThatWasClosed) {
  const TemporaryFolder folder;
  LrunProcess lrun({"-n", "2", "--log-dir", folder.path().string(), "sh", "-c", "echo hello; echo $RANK > ran-$RANK"},
                   {.before_exec = [&] {
                     (void)!::chdir(folder.path().c_str());
                     for (int fd = 0; fd <= 2; ++fd) ::close(fd);
                   }});
  EXPECT_EQ(lrun.wait().code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "ran-1"));
  const auto log = folder.path() / lrun.run_folder().filename() / "attempt_0" / "1" / "stdout.log";
  EXPECT_EQ(contents(log), "hello\n");
}

TEST(Launch, AStopThatArrivesWithTheLastWorkersEndIsAnswered) {
  LrunProcess lrun({"-n", "1", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(lrun.wait_for("[0] ready"));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(lrun.run_folder() / "control.sock"); }));
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (lrun.run_folder() / "control.sock").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const pid_t launcher = lrun.launcher_pid();
  const pid_t worker = living_children(launcher).front();
  ::kill(launcher, SIGSTOP);
  ASSERT_EQ(::send(socket.get(), "stop\n", 5, 0), 5);
  ::kill(worker, SIGKILL);
  ASSERT_TRUE(eventually([&] { return process_state(worker) == 'Z'; }));
  ::kill(launcher, SIGCONT);
  const LrunEnd end = lrun.wait();
  EXPECT_TRUE(end.signal_number == SIGTERM || end.code == 137) << end.code << lrun.err();
}

}  // namespace
}  // namespace lrun::test
