#include "inspect/read_machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "inspect/reach_hosts.h"
#include "inspect/read_driver.h"

namespace lrun::launcher {
namespace {

TEST(ReadMachine, FindsWhatEveryMachineHas) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  Environment environment;
  environment.set("LRUN_STATE", "/nowhere/at/all");
  const MachineFacts facts =
      read_machine({{.name = "127.0.0.1"}}, {"ssh"}, {.program = "/nowhere/python"}, environment);
  EXPECT_EQ(facts.host_name, name);
  EXPECT_GE(facts.cpus, 1);
  EXPECT_EQ(facts.loopback_error, "");
  EXPECT_GT(facts.clock_seconds, 1'700'000'000);
  EXPECT_EQ(facts.state_folder, "/nowhere/at/all");
  EXPECT_GT(facts.state_room.total_bytes, 0U) << "of the nearest folder that is there";
  ASSERT_EQ(facts.peers.size(), 1U);
  EXPECT_EQ(facts.peers[0].path, PeerFacts::Path::kOpen) << "nobody needs to listen: " << facts.peers[0].detail;
  EXPECT_EQ(facts.peers[0].login, PeerFacts::Login::kNotTried) << "a run needs no ssh for its own machine";
  EXPECT_EQ(facts.python.choice.program, "/nowhere/python");
}

TEST(ReachHosts, ReportsANameThatDoesNotResolve) {
  const std::vector<PeerFacts> peers = reach_hosts({"no such host", "127.0.0.1"}, Duration(20'000));
  ASSERT_EQ(peers.size(), 2U);
  EXPECT_EQ(peers[0].path, PeerFacts::Path::kUnresolved);
  EXPECT_NE(peers[0].detail, "");
  EXPECT_EQ(peers[1].path, PeerFacts::Path::kOpen);
  EXPECT_EQ(peers[1].address, "127.0.0.1");
}

TEST(ReachHosts, EndsAtItsLimit) {
  const auto start = std::chrono::steady_clock::now();
  // TEST-NET-1: no route, or nobody answers.
  const std::vector<PeerFacts> peers = reach_hosts({"192.0.2.1"}, Duration(600));
  EXPECT_NE(peers.at(0).path, PeerFacts::Path::kUnresolved);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Resolve, GivesNumericAddresses) {
  bool timed_out = true;
  const std::vector<std::string> addresses = resolve("127.0.0.1", Duration(20'000), timed_out);
  EXPECT_EQ(addresses, std::vector<std::string>{"127.0.0.1"});
  EXPECT_FALSE(timed_out);
  EXPECT_TRUE(resolve("no such host", Duration(20'000), timed_out).empty());
}

}  // namespace
}  // namespace lrun::launcher
