#include "rendezvous/job_servers.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdint>
#include <system_error>

#include "coordinator_harness.h"
#include "store/listening_socket.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using Hosting = RendezvousPlan::Hosting;

RendezvousPlan plan_of(Hosting hosting, bool workers_use_endpoint = false) {
  RendezvousPlan plan;
  plan.host = "127.0.0.1";
  plan.hosting = hosting;
  plan.workers_use_endpoint = workers_use_endpoint;
  plan.max_nodes = 2;
  return plan;
}

JobServers::Options options_of(const RendezvousPlan& plan) {
  JoinRecord record = test::node_at("127.0.0.1");
  record.store_port = 0;
  return {.plan = plan, .record = record, .merge = test::joined, .rejected = {}, .begun = {}};
}

TEST(JobServers, ServeTheRendezvousWhereThePlanWantsThat) {
  EventLoop loop;
  const JobServers servers(loop, options_of(plan_of(Hosting::kMust)));
  ASSERT_NE(servers.rendezvous(), nullptr);
  EXPECT_TRUE(servers.owns_endpoint());
  EXPECT_EQ(servers.record().standby_port, 0) << "it leads";
  EXPECT_NE(servers.record().store_port, servers.rendezvous()->server().port());
  EXPECT_FALSE(servers.record().node_rank);
  EXPECT_EQ(servers.own_address(), "127.0.0.1");
  EXPECT_EQ(servers.open_place(), "");
}

TEST(JobServers, KeepAPortForALauncherThatMayLeadLater) {
  EventLoop loop;
  JobServers servers(loop, options_of(plan_of(Hosting::kNever)));
  EXPECT_EQ(servers.rendezvous(), nullptr);
  const int port = servers.record().standby_port;
  EXPECT_GT(port, 0);
  servers.lead_from_standby();
  ASSERT_NE(servers.rendezvous(), nullptr);
  EXPECT_EQ(servers.rendezvous()->server().port(), port);
  EXPECT_FALSE(servers.owns_endpoint());
  servers.stop_leading();
  EXPECT_EQ(servers.rendezvous(), nullptr);
}

TEST(JobServers, LeaveTheEndpointToAnotherLauncherOfThisMachine) {
  EventLoop loop;
  RendezvousPlan plan = plan_of(Hosting::kMust);
  const JobServers first(loop, options_of(plan));
  plan.port = first.rendezvous()->server().port();
  EXPECT_THROW(JobServers(loop, options_of(plan)), std::system_error);
  plan.hosting = Hosting::kIfFree;
  const JobServers second(loop, options_of(plan));
  EXPECT_EQ(second.rendezvous(), nullptr);
  EXPECT_GT(second.record().standby_port, 0);
}

TEST(JobServers, HaveTheWorkersStoreAtTheEndpointOfAStaticBackend) {
  EventLoop loop;
  JobServers servers(loop, options_of(plan_of(Hosting::kMust, true)));
  EXPECT_EQ(servers.record().store_port, servers.rendezvous()->server().port());
  EXPECT_EQ(servers.record().node_rank, 0);
  EXPECT_EQ(servers.store_for({.self = {.node_rank = 0}}), &servers.rendezvous()->server());
}

TEST(JobServers, KeepLaunchersThatConnectedToTheListenerBeforeIt) {
  EventLoop loop;
  RendezvousPlan plan = plan_of(Hosting::kMust, true);
  Fd listener = open_listening_socket(StoreReach::kLoopback, 0);
  plan.port = port_of_socket(listener.get());
  const Fd early = begin_to_connect("127.0.0.1", static_cast<std::uint16_t>(plan.port));
  plan.listener = listener.release();
  const JobServers servers(loop, options_of(plan));
  pollfd end{early.get(), POLLIN | POLLRDHUP, 0};
  EXPECT_EQ(::poll(&end, 1, 100), 0) << "the connection was closed";
}

TEST(JobServers, CloseTheWorkersStoreWhereAnotherNodeHostsIt) {
  EventLoop loop;
  JobServers servers(loop, options_of(plan_of(Hosting::kNever)));
  const int port = servers.record().store_port;
  StoreServer* const own = servers.store_for({.self = {.node_rank = 0}});
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->port(), port);
  EXPECT_EQ(servers.store_for({.self = {.node_rank = 1}}), nullptr);
  servers.open_store();
  EXPECT_GT(servers.record().store_port, 0) << "for the next round";
}

TEST(JobServers, RedirectWhereTheJobMeetsElsewhereAndTakeTheRendezvousBack) {
  EventLoop loop;
  JobServers servers(loop, options_of(plan_of(Hosting::kMust, true)));
  servers.rendezvous()->redirect_to(RendezvousAddress{"127.0.0.1", 7001});
  servers.hand_away();
  EXPECT_EQ(servers.rendezvous(), nullptr);
  EXPECT_TRUE(servers.owns_endpoint());
  EXPECT_EQ(servers.redirect(), (RendezvousAddress{"127.0.0.1", 7001}));
  EXPECT_GT(servers.record().standby_port, 0);
  EXPECT_FALSE(servers.record().node_rank) << "the rank was that of the endpoint";
  servers.redirect_to({"127.0.0.1", 7002});
  EXPECT_EQ(servers.redirect()->port, 7002);
  servers.serve_again();
  ASSERT_NE(servers.rendezvous(), nullptr);
  EXPECT_EQ(servers.redirect(), std::nullopt);
  EXPECT_EQ(servers.record().standby_port, 0);
  EXPECT_EQ(servers.record().node_rank, 0);
  EXPECT_EQ(servers.record().store_port, servers.rendezvous()->server().port());
}

}  // namespace
}  // namespace lrun::launcher
