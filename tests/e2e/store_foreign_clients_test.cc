// Clients of the workers' store that are no process of the run: which are refused, and what they cost its workers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/lrun_process.h"
#include "support/process_memory.h"
#include "support/temporary_folder.h"

namespace lrun::test {
namespace {

/// Sends the handshake and a ping with one number to the store, and prints the answer: '01000000'.
constexpr const char* kPing =
    "exec 3<>/dev/tcp/127.0.0.1/$MASTER_PORT; printf '\\0\\316\\367\\205\\074\\015\\001\\0\\0\\0' >&3; "
    "head -c 4 <&3 | od -An -tx1 | tr -d ' '; ";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has_bash() { return ::access("/bin/bash", X_OK) == 0 || ::access("/usr/bin/bash", X_OK) == 0; }

TEST(StoreForeignClients, IdleClientsThatAreNoProcessOfTheRunShutNoWorkerOut) {
  if (!has_bash()) GTEST_SKIP() << "bash is needed: it opens connections";
  const TemporaryFolder folder;
  const std::string port = folder / "port";
  const std::string go = folder / "go";
  // 512 places, as one worker may have; more are taken before it comes.
  const std::string hold = "MASTER_PORT=$(cat " + port + "); for i in $(seq 600); do exec {fd}<>/dev/tcp/127.0.0.1/" +
                           "$MASTER_PORT; printf '\\0\\316\\367\\205\\074' >&$fd; done; touch " + go +
                           "; exec sleep 1000";
  const pid_t foreign = ::fork();
  if (foreign == 0) {
    ::setpgid(0, 0);
    const std::string script = "ulimit -n 2000; until [ -s " + port + " ]; do sleep 0.01; done; " + hold;
    ::execlp("bash", "bash", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  LrunProcess lrun({"-n", "1", "--timeout", "50s", "bash", "-c",
                    "echo $MASTER_PORT > " + port + ".new; mv " + port + ".new " + port + "; until [ -e " + go +
                        " ]; do sleep 0.01; done; for i in 1 2 3; do " + kPing + "done"});
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_EQ(lrun.out(), "[0] 01000000\n[0] 01000000\n[0] 01000000\n") << lrun.err();
  ::kill(-foreign, SIGKILL);
  ::waitpid(foreign, nullptr, 0);
}

/// VALIDATE, and a MULTI_SET of which the last of 25 values never comes.
std::string unfinished_message() {
  std::string bytes("\0\316\367\205\074\013", 6);
  const auto number = [&bytes](std::uint64_t value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(25);
  for (int i = 0; i < 24; ++i) {
    number(2);
    bytes += "k" + std::string(1, static_cast<char>('a' + i));
    number(1 << 20U);
    bytes.append(1 << 20U, 'x');
  }
  return bytes;
}

TEST(StoreForeignClients, MessagesThatAreNeverFinishedCostLittleMemory) {
  if (!has_bash()) GTEST_SKIP() << "bash is needed: it opens connections";
  const TemporaryFolder folder;
  const std::string go = folder / "go";
  LrunProcess lrun({"-n", "1", "--timeout", "50s", "bash", "-c",
                    "echo port $MASTER_PORT end; until [ -e $0 ]; do sleep 0.01; done; " + std::string(kPing), go});
  ASSERT_TRUE(lrun.wait_for(" end\n"));
  const std::size_t begin = lrun.out().find("port ") + 5;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(lrun.out().substr(begin))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string message = unfinished_message();
  std::vector<Fd> foreign;
  for (int i = 0; i < 20; ++i) {
    foreign.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(foreign.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    (void)::send(foreign.back().get(), message.data(), message.size(), MSG_NOSIGNAL);
  }
  const long resident = resident_bytes(lrun.launcher_pid());
  EXPECT_GT(resident, 0);
  EXPECT_TRUE(!kMemoryTells || resident < 350 << 20) << resident << " bytes, and 20 foreign clients sent 480 MiB";
  std::ofstream(go) << "go";
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(lrun.out().ends_with("[0] 01000000\n")) << lrun.out() << lrun.err();
}

/// Runs kPing as another user, outside the run. \param output  the file for the answer
void ping_as_other_user(const std::string& port, const std::string& output) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(::open(output.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    ::setenv("MASTER_PORT", port.c_str(), 1);
    ::execlp("setpriv", "setpriv", "--reuid", "65533", "--clear-groups", "bash", "-c", kPing, nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 126);
}

TEST(StoreForeignClients, OtherUsersOfTheHostAreRefusedUnlessAWorkerIsOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  if (!has_bash() || ::access("/usr/bin/setpriv", X_OK) != 0) GTEST_SKIP() << "bash and setpriv are needed";
  const TemporaryFolder folder;
  const std::string go = folder / "go";
  const std::string script =
      "echo port $MASTER_PORT end; until [ -e $0 ]; do sleep 0.01; done; "
      "setpriv --reuid 65534 --clear-groups bash -c \"$1\"";
  LrunProcess lrun({"-n", "1", "--timeout", "50s", "bash", "-c", script, go, kPing});
  ASSERT_TRUE(lrun.wait_for(" end\n"));
  const std::size_t begin = lrun.out().find("port ") + 5;
  const std::string port = lrun.out().substr(begin, lrun.out().find(" end") - begin);
  ping_as_other_user(port, folder / "said");
  EXPECT_EQ(text_of(folder / "said").find("01000000"), std::string::npos) << "the store answered another user";
  std::ofstream(go) << "go";
  EXPECT_EQ(lrun.wait().code, 0) << lrun.err();
  EXPECT_TRUE(lrun.out().ends_with("[0] 01000000\n")) << "a worker may change its user: " << lrun.out() << lrun.err();
  EXPECT_NE(lrun.err().find("it belongs to user 65533, and the run to user 0"), std::string::npos) << lrun.err();
}

}  // namespace
}  // namespace lrun::test
