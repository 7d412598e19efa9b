// Jobs that meet at addresses of the loopback interface: each has its address to itself.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <memory>

#include "support/launchers_of_a_job.h"

namespace lrun::test {
namespace {

/// Says where it is, and whether somebody serves the store.
const std::string kShow =
    "(exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT) 2> /dev/null && served=served || served=refused; "
    "echo \"$RANK of $WORLD_SIZE in $TORCHELASTIC_RUN_ID, store $served at $MASTER_ADDR\"";

class LoopbackEndpoints : public ::testing::Test {
 protected:
  [[nodiscard]] std::string port() const { return std::to_string(port_); }

  /// A launcher of the job of that name, which meets at that host.
  LrunProcess& start(const std::string& name, const std::string& host, const Words& options,
                     const std::string& script) {
    Words words{"--rdzv-endpoint", host + ":" + port(), "--rdzv-id", name, "--num_nodes", "2", "-n", "1"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"bash", "-c", script});
    launchers_.push_back(std::make_unique<LrunProcess>(words));
    return *launchers_.back();
  }

  /// Whether somebody accepts connections there.
  [[nodiscard]] bool is_served(const std::string& address) const {
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port_));
    EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &place.sin_addr), 1);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
  }

 private:
  int port_ = free_port();
  std::vector<std::unique_ptr<LrunProcess>> launchers_;
};

bool machine_has_ipv6() {
  const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any_port{};
  any_port.sin6_family = AF_INET6;
  any_port.sin6_addr = in6addr_loopback;
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) == 0;
}

TEST_F(LoopbackEndpoints, KeepTwoJobsWithOnePortApart) {
  for (const char* const backend : {"static", "c10d"}) {
    const TemporaryFolder folder;
    const std::string end = (folder.path() / "end").string();
    const std::string wait = kShow + "; while [ ! -e " + end + " ]; do sleep 0.1; done";
    LrunProcess& first = start("one", "127.0.0.2", {"--node-rank", "0", "--rdzv-backend", backend}, wait);
    LrunProcess& second = start("one", "127.0.0.2", {"--node-rank", "1", "--rdzv-backend", backend}, wait);
    ASSERT_TRUE(first.wait_for("0 of 2") && second.wait_for("1 of 2")) << first.err() << second.err();
    LrunProcess& other_second = start("two", "127.0.0.3", {"--node-rank", "1", "--rdzv-backend", backend}, kShow);
    LrunProcess& other_first = start("two", "127.0.0.3", {"--node-rank", "0", "--rdzv-backend", backend}, kShow);
    EXPECT_EQ(other_first.wait().code, 0) << other_first.err();
    EXPECT_EQ(other_second.wait().code, 0) << other_second.err();
    std::ofstream(end) << "now\n";
    EXPECT_EQ(first.wait().code, 0) << first.err();
    EXPECT_EQ(second.wait().code, 0) << second.err();
    EXPECT_TRUE(contains(first.out(), "0 of 2 in one, store served at 127.0.0.2\n")) << first.out();
    EXPECT_TRUE(contains(second.out(), "1 of 2 in one, store served at 127.0.0.2\n")) << second.out();
    EXPECT_TRUE(contains(other_first.out(), "0 of 2 in two, store served at 127.0.0.3\n")) << other_first.out();
    EXPECT_TRUE(contains(other_second.out(), "1 of 2 in two, store served at 127.0.0.3\n")) << other_second.out();
    for (const LrunProcess* launcher : {&first, &second, &other_first, &other_second}) {
      EXPECT_FALSE(contains(launcher->err(), "LRUN_JOB_SECRET")) << "nobody else can come: " << launcher->err();
    }
  }
}

TEST_F(LoopbackEndpoints, AreServedAtNoOtherAddress) {
  LrunProcess& leader = start("one", "127.0.0.2", {"--node-rank", "0"}, "true");
  ASSERT_TRUE(eventually([&] { return is_served("127.0.0.2"); })) << leader.err();
  for (const char* const other : {"127.0.0.4", "127.77.0.1"}) EXPECT_FALSE(is_served(other)) << other;
  leader.signal(SIGTERM);
  leader.wait();
}

TEST_F(LoopbackEndpoints, AreTheStoresOfJobsOfOneNode) {
  const std::string wait = kShow + "; exec sleep 1000";
  LrunProcess& one = start("one", "127.0.0.2", {"--num_nodes", "1"}, wait);
  LrunProcess& two = start("two", "127.0.0.3", {"--num_nodes", "1"}, wait);
  EXPECT_TRUE(one.wait_for("0 of 1 in one, store served at 127.0.0.2\n")) << one.out() << one.err();
  EXPECT_TRUE(two.wait_for("0 of 1 in two, store served at 127.0.0.3\n")) << two.out() << two.err();
  for (LrunProcess* launcher : {&one, &two}) {
    launcher->signal(SIGTERM);
    launcher->wait();
  }
}

TEST_F(LoopbackEndpoints, MayBeIPv6sWithIPv6AndWithoutIt) {
  const std::string at = std::string("served at ") + (machine_has_ipv6() ? "::1" : "127.0.0.1") + "\n";
  for (const char* const backend : {"static", "c10d"}) {
    LrunProcess& second = start("one", "[::1]", {"--node-rank", "1", "--rdzv-backend", backend}, kShow);
    LrunProcess& first = start("one", "[::1]", {"--node-rank", "0", "--rdzv-backend", backend}, kShow);
    for (LrunProcess* launcher : {&first, &second}) {
      EXPECT_EQ(launcher->wait().code, 0) << launcher->err();
      EXPECT_TRUE(contains(launcher->out(), at)) << launcher->out();
    }
  }
}

TEST_F(LoopbackEndpoints, MayBeWrittenAsTorchrunsMasterAddress) {
  const std::string at = std::string("served at ") + (machine_has_ipv6() ? "::1" : "127.0.0.1") + "\n";
  const Words common{"--master-addr", "[::1]", "--master-port", port(), "-n", "1"};
  const Words program{"bash", "-c", kShow};
  LrunProcess second(joined(joined(common, {"--num_nodes", "2", "--node-rank", "1"}), program));
  LrunProcess first(joined(joined(common, {"--num_nodes", "2", "--node-rank", "0"}), program));
  for (LrunProcess* launcher : {&first, &second}) {
    EXPECT_EQ(launcher->wait().code, 0) << launcher->err();
    EXPECT_TRUE(contains(launcher->out(), at)) << launcher->out();
  }
  LrunProcess alone(joined(common, program));
  EXPECT_EQ(alone.wait().code, 0) << alone.err();
  EXPECT_TRUE(contains(alone.out(), at)) << alone.out();
}

TEST_F(LoopbackEndpoints, SayWhoHasThem) {
  LrunProcess& leader = start("one", "127.0.0.2", {"--node-rank", "0"}, "true");
  ASSERT_TRUE(eventually([&] { return is_served("127.0.0.2"); })) << leader.err();
  LrunProcess& late = start("two", "127.0.0.2", {"--node-rank", "0"}, "true");
  EXPECT_EQ(late.wait().code, 125);
  EXPECT_TRUE(contains(late.err(), "error: '--node-rank 0': another launcher at 127.0.0.2:" + port() +
                                       " is node rank 0 already\n"
                                       "lrun: hint: on other nodes write '--node-rank 1', for a second job another "
                                       "port; 'lrun status' shows one left over\n"))
      << late.err();
  leader.signal(SIGTERM);
  leader.wait();
}

}  // namespace
}  // namespace lrun::test
