#include <gtest/gtest.h>

#include "plan/make_plan.h"
#include "planning.h"

namespace lrun::launcher {
namespace {

/// Of a job of four nodes, which has a name.
LaunchRequest request_with_etcd(const RendezvousRequest& rendezvous) {
  LaunchRequest request = request_for("2");
  request.num_nodes = {4, Source::kFlag, "--num_nodes"};
  request.rendezvous = rendezvous;
  request.rendezvous.backend = backend_flag("etcd-v2");
  request.rdzv_id = "my-job";
  return request;
}

TEST(EtcdPlan, FindsTheMeetingThroughEtcd) {
  LaunchRequest request = request_with_etcd({.endpoint = endpoint_of("there", {}), .more_endpoints = {{"here", 4000}}});
  AllocatedNode node = cpu_node();
  node.also_named = {"here"};
  const RendezvousPlan plan = *plan_of(request, node).rendezvous;
  EXPECT_EQ(plan.backend, RendezvousBackend::kEtcd);
  EXPECT_EQ(plan.etcd, (std::vector<Endpoint>{{"there", 2379}, {"here", 4000}}));
  EXPECT_EQ(plan.etcd_folder, "/lrun/my-job");
  EXPECT_EQ(plan.hosting, RendezvousPlan::Hosting::kNever) << "etcd decides";
  EXPECT_FALSE(plan.workers_use_endpoint);
  EXPECT_EQ(plan.connect_timeout, Duration(30'000)) << "etcd is there before a job";
  request.rdzv_id.clear();
  EXPECT_EQ(
      refusal_of([&] { plan_of(request, node); }),
      "'--rdzv-backend etcd-v2': a job that meets through etcd has to have a name | give it the same one on every "
      "node, such as '--rdzv-id my-job'");
  EXPECT_EQ(
      refusal_of([&] { check_meeting_place(plan_of(request_with_etcd({}), node)); }),
      "'--rdzv-backend etcd': nobody said where etcd is | on every node, write '--rdzv-endpoint HOST:2379' with one "
      "or more of its members, with commas");
  EXPECT_EQ(
      refusal_of([&] {
        LaunchRequest other = request_with_etcd({.endpoint = endpoint_of("there", 1), .more_endpoints = {{"here", 1}}});
        other.rendezvous.backend = {};
        other.rendezvous.backend.value = RendezvousBackend::kStatic;
        plan_of(other, node);
      }),
      "'--rdzv-endpoint' names several endpoints, and the backend is 'static' | write one, or '--rdzv-backend etcd' "
      "where they are members of an etcd");
}

TEST(EtcdPlan, AsksAnEtcdOverTlsWhereThatIsSaid) {
  const EtcdTls files{.authorities = "ca.pem"};
  RendezvousRequest asked{.endpoint = endpoint_of("there", {}), .etcd_is_asked_over_tls = true, .etcd_tls = files};
  EXPECT_EQ(plan_of(request_with_etcd(asked), cpu_node()).rendezvous->etcd_tls, files);
  asked.etcd_is_asked_over_tls = false;
  const LaunchPlan plain = plan_of(request_with_etcd(asked), cpu_node());
  EXPECT_EQ(plain.rendezvous->etcd_tls, std::nullopt);
  EXPECT_EQ(plain.warnings.at(0),
            "the certificates in '--rdzv-conf' are not used: etcd is asked over plain http without 'protocol=https'");
  asked.etcd_tls = {.key = "own.key"};
  EXPECT_EQ(refusal_of([&] { plan_of(request_with_etcd(asked), cpu_node()); }),
            "'--rdzv-conf key=own.key': there is no certificate to which the key belongs | name both, as in "
            "'protocol=https,cert=client.pem,key=client.key'");
}

TEST(EtcdPlan, AsksNoEtcdForOneNode) {
  LaunchRequest request = request_for("8");
  request.rendezvous = {.backend = backend_flag("etcd"), .endpoint = endpoint_of("there", 2379)};
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_FALSE(plan.rendezvous);
  EXPECT_EQ(plan.master_addr, "127.0.0.1");
  EXPECT_FALSE(plan.master_port) << "a free one";
}

}  // namespace
}  // namespace lrun::launcher
