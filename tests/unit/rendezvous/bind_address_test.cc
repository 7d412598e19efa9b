#include "rendezvous/bind_address.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

/// '127.0.0.2' where only that listens, 'loopback' or 'network'.
std::string reach_at(const std::string& host, const std::string& local_addr = {}) {
  RendezvousPlan plan;
  plan.host = host;
  plan.local_addr = local_addr;
  const std::string address = bind_address_of(plan);
  const std::string reach = reach_of(plan) == StoreReach::kLoopback ? "loopback" : "network";
  return address.empty() ? reach : reach + " " + address;
}

TEST(JobReach, IsExactlyTheLoopbackAddressOfTheEndpoint) {
  EXPECT_EQ(reach_at("127.0.0.1"), "loopback 127.0.0.1");
  EXPECT_EQ(reach_at("127.0.0.2"), "loopback 127.0.0.2");
  EXPECT_EQ(reach_at("::1"), "loopback ::1");
  EXPECT_EQ(reach_at("localhost"), "loopback 127.0.0.1");
}

TEST(JobReach, IsEveryInterfaceForWhateverElseTheEndpointIs) {
  for (const char* const host : {"10.0.0.1", "fd00::1", "node0", "127.example.com", "0.0.0.0"}) {
    EXPECT_EQ(reach_at(host), "network") << host;
  }
}

TEST(JobReach, IsEveryInterfaceForANodeThatIsReachedElsewhere) {
  EXPECT_EQ(reach_at("127.0.0.2", "127.0.0.2"), "loopback 127.0.0.2") << "it is there";
  EXPECT_EQ(reach_at("127.0.0.1", "localhost"), "loopback 127.0.0.1");
  for (const char* const elsewhere : {"127.0.0.3", "127.0.0.1", "10.0.0.1", "node0"}) {
    EXPECT_EQ(reach_at("127.0.0.2", elsewhere), "network") << elsewhere;
  }
}

TEST(JobReach, IsTheLoopbackInterfaceWhereAllOfAnEtcdIsOnIt) {
  const auto reach_with = [](std::vector<Endpoint> etcd, const std::string& local_addr = {}) {
    RendezvousPlan plan;
    plan.host = etcd.front().host;
    plan.etcd = std::move(etcd);
    plan.local_addr = local_addr;
    EXPECT_EQ(bind_address_of(plan), "") << "nobody owns the endpoint";
    return reach_of(plan);
  };
  EXPECT_EQ(reach_with({{"127.0.0.2", 2379}, {"localhost", 2379}}), StoreReach::kLoopback);
  EXPECT_EQ(reach_with({{"127.0.0.1", 2379}, {"node0", 2379}}), StoreReach::kNetwork);
  EXPECT_EQ(reach_with({{"127.0.0.1", 2379}}, "10.0.0.1"), StoreReach::kNetwork);
}

}  // namespace
}  // namespace lrun::launcher
