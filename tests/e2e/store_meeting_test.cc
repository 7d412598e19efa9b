// Launchers of a job that meet through a store which others serve at their endpoint.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "support/elastic_jobs.h"

namespace lrun::test {
namespace {

/// A job of one node serves the store of its workers at the endpoint.
class StoreMeeting : public ElasticJobs {
 protected:
  [[nodiscard]] Words words(const std::string& name, const Words& options, const Words& command) const {
    const Words first{"--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint_, "--rdzv-id", name};
    return joined(joined(first, options), command);
  }
  void start_keeper() {
    keeper_ = std::make_unique<LrunProcess>(words("keeper", {"--nnodes", "1"}, shell("echo up; exec sleep 1000")));
    ASSERT_TRUE(keeper_->wait_for("up")) << keeper_->err();
  }
  void end_keeper() {
    keeper_->signal(SIGTERM);
    keeper_->wait();
    EXPECT_FALSE(contains(keeper_->err(), "store:")) << "it was no trouble for it: " << keeper_->err();
  }
  LrunProcess& start(const std::string& nodes, const Words& command, const std::string& conf = "") {
    const std::string all = "is_host=false,heartbeat_timeout=3,last_call_timeout=2" + conf;
    nodes_.push_back(std::make_unique<LrunProcess>(words("mine", {"--nnodes", nodes, "--rdzv-conf", all}, command)));
    return *nodes_.back();
  }

  int port_ = free_port();
  std::string endpoint_ = "127.0.0.1:" + std::to_string(port_);
  std::unique_ptr<LrunProcess> keeper_;
  std::vector<std::unique_ptr<LrunProcess>> nodes_;
};

TEST_F(StoreMeeting, IsHeldByOneOfTheLaunchersAndRememberedWhenTheJobIsOver) {
  start_keeper();
  LrunProcess& first = start("2", shell("echo rank $RANK of $WORLD_SIZE in $TORCHELASTIC_RUN_ID"));
  LrunProcess& second = start("2", shell("echo rank $RANK of $WORLD_SIZE in $TORCHELASTIC_RUN_ID"));
  expect_success({&first, &second});
  EXPECT_TRUE(contains(first.out() + second.out(), "rank 0 of 2 in mine")) << first.out() << second.out();
  EXPECT_TRUE(contains(first.out() + second.out(), "rank 1 of 2 in mine")) << first.out() << second.out();
  LrunProcess& late = start("2", {"echo", "started"});
  EXPECT_EQ(late.wait().code, 125) << late.err();
  EXPECT_TRUE(contains(late.err(), "the job 'mine' is over, and the store at 127.0.0.1 port ")) << late.err();
  EXPECT_TRUE(contains(late.err(), "keeps its name: it succeeded\n")) << late.err();
  EXPECT_TRUE(contains(late.err(), "hint: choose another '--rdzv-id'")) << late.err();
  EXPECT_FALSE(contains(late.out(), "started")) << late.out();
  end_keeper();
}

TEST_F(StoreMeeting, RemembersWhyAJobFailed) {
  start_keeper();
  LrunProcess& first = start("1:2", shell("exit 41"));
  EXPECT_EQ(first.wait().code, 41) << first.err();
  LrunProcess& late = start("1:2", {"echo", "started"});
  EXPECT_EQ(late.wait().code, 125) << late.err();
  EXPECT_TRUE(contains(late.err(), "keeps its name: it ended with '")) << late.err();
  end_keeper();
}

TEST_F(StoreMeeting, TakesInWhoComesLater) {
  start_keeper();
  LrunProcess& first = start("1:2", program());
  ASSERT_TRUE(first.wait_for("rank 0/1")) << first.err();
  LrunProcess& second = start("1:2", program());
  ASSERT_TRUE(second.wait_for("rank 1/2")) << second.err();
  ASSERT_TRUE(first.wait_for("rank 0/2")) << first.err();
  end();
  expect_success({&first, &second});
  end_keeper();
}

TEST_F(StoreMeeting, IsHeldByAnotherWhenItsHolderIsKilled) {
  start_keeper();
  LrunProcess& first = start("2:3", program());
  ASSERT_TRUE(first.wait_for("waiting")) << first.err();
  LrunProcess& second = start("2:3", program());
  LrunProcess& third = start("2:3", program());
  ASSERT_TRUE(first.wait_for("rank 0/3")) << first.err();
  ASSERT_TRUE(second.wait_for("/3") && third.wait_for("/3")) << second.err() << third.err();
  kill_whole(first);
  ASSERT_TRUE(second.wait_for("/2 of 2 count 0.")) << second.err();
  ASSERT_TRUE(third.wait_for("/2 of 2 count 0.")) << third.err();
  end();
  expect_success({&second, &third});
  LrunProcess& late = start("2:3", {"echo", "started"});
  EXPECT_EQ(late.wait().code, 125) << late.err();
  EXPECT_TRUE(contains(late.err(), "the job 'mine' is over")) << late.err();
  end_keeper();
}

TEST_F(StoreMeeting, EndsWithTheStoreThatIsGone) {
  start_keeper();
  LrunProcess& first = start("1:2", program(), ",join_timeout=5");
  ASSERT_TRUE(first.wait_for("rank 0/1")) << first.err();
  kill_whole(*keeper_);
  EXPECT_NE(first.wait().code, 0) << first.err();
  EXPECT_TRUE(contains(first.err(), "no word from the store for 3s: cannot connect to the store at 127.0.0.1 port "))
      << first.err();
  EXPECT_TRUE(eventually([&] { return first.processes().empty(); })) << "a worker outlived its job";
}

/// Connections of this host to `port`, as their clients' ends are listed.
int num_connections_to(int port) {
  std::ostringstream peer;
  peer << "0100007F:" << std::uppercase << std::hex << port;
  std::ifstream sockets("/proc/net/tcp");
  int count = 0;
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream fields(line);
    std::string number, own, other, state;
    fields >> number >> own >> other >> state;
    count += other == peer.str() && state == "01" ? 1 : 0;
  }
  return count;
}

/// It answers clients of the store, too, and nobody for a while. The last call is longer than who is not answered
/// waits.
TEST_F(StoreMeeting, IsNotSoughtInAMeetingThatIsSlow) {
  LrunProcess first(words("mine", {"--nnodes", "2:3", "--rdzv-conf", "last_call_timeout=4,heartbeat_timeout=60"},
                          shell("echo rank $RANK/$WORLD_SIZE")));
  ASSERT_TRUE(first.wait_for("waiting")) << first.err();
  const int connected = num_connections_to(port_);
  ::kill(first.launcher_pid(), SIGSTOP);
  LrunProcess& second = start("2:3", shell("echo rank $RANK/$WORLD_SIZE"), ",heartbeat_timeout=60");
  EXPECT_TRUE(eventually([&] { return num_connections_to(port_) >= connected + 2; })) << "one asks for a store";
  ::kill(first.launcher_pid(), SIGCONT);
  expect_success({&first, &second});
  EXPECT_TRUE(contains(first.out(), "rank 0/2")) << first.out();
  EXPECT_TRUE(contains(second.out(), "rank 1/2")) << second.out();
}

/// LRUN_TEST_PYTHON names a Python that has torch.
TEST_F(StoreMeeting, IsHeldBesideAStoreOfTorch) {
  const char* const python = std::getenv("LRUN_TEST_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "LRUN_TEST_PYTHON names no Python that has torch";
  for (const char* const kind : {"True", "False"}) {
    const std::string script =
        "import time, torch.distributed as d\n"
        "s = d.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False, use_libuv=" +
        std::string(kind) + ")\nprint('port %d.' % s.port, flush=True)\ntime.sleep(1000)";
    LrunProcess server({"--nproc-per-node", "1", python, "-c", script});
    ASSERT_TRUE(server.wait_for("port ")) << server.err();
    ASSERT_TRUE(server.wait_for(".")) << server.err();
    const std::string out = server.out();
    endpoint_ = "127.0.0.1:" + std::to_string(std::stoi(out.substr(out.find("port ") + 5)));
    std::filesystem::remove(end_);
    LrunProcess& first = start("1:2", program());
    ASSERT_TRUE(first.wait_for("rank 0/1")) << first.err();
    LrunProcess& second = start("1:2", program());
    ASSERT_TRUE(second.wait_for("rank 1/2")) << second.err();
    kill_whole(first);
    ASSERT_TRUE(second.wait_for("rank 0/1 of 1")) << second.err();
    end();
    expect_success({&second});
    LrunProcess& late = start("1:2", {"echo", "started"});
    EXPECT_EQ(late.wait().code, 125) << late.err();
    EXPECT_TRUE(contains(late.err(), "the job 'mine' is over")) << late.err();
    server.signal(SIGTERM);
    server.wait();
  }
}

}  // namespace
}  // namespace lrun::test
