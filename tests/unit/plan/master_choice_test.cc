#include "plan/master_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/mentions.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {
namespace {

using Warnings = std::vector<std::string>;

/// '127.0.0.1:29400', with '?' where another port will do, for an endpoint and a backend.
std::string master_of(const RendezvousRequest& rendezvous, std::optional<int> master_port = {}) {
  LaunchRequest request = request_for("2");
  request.rendezvous = rendezvous;
  if (master_port) request.master_port = {master_port, Source::kFlag, "--master-port"};
  AllocatedNode node = cpu_node();
  node.also_named = {"localhost", "::1"};
  try {
    const LaunchPlan plan = plan_of(request, node);
    return plan.master_addr + ":" + std::to_string(plan.master_port.value_or(0)) + (plan.any_port_will_do ? "?" : "");
  } catch (const UserError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
}

TEST(MasterChoice, TakesThePortOfAnEndpointOnThisHost) {
  EXPECT_EQ(master_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", 29400)}),
            "127.0.0.1:29400?");
  EXPECT_EQ(master_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("::1", {})}), "::1:29400?");
  EXPECT_EQ(master_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", 0)}), "127.0.0.1:0?");
  EXPECT_EQ(master_of({.endpoint = endpoint_of("localhost", 4000)}, 5000), "127.0.0.1:4000") << "as torchrun";
  EXPECT_EQ(master_of({.backend = backend_flag("c10d")}, 5000), "127.0.0.1:5000");
  EXPECT_EQ(master_of({.master_addr = flag("--master-addr", "localhost")}, 5000), "127.0.0.1:5000");
}

TEST(MasterChoice, HasTheStoreAtTheLoopbackAddressThatTheEndpointNames) {
  EXPECT_EQ(master_of({.endpoint = endpoint_of("127.0.0.2", 4000)}), "127.0.0.2:4000");
  EXPECT_EQ(master_of({.endpoint = endpoint_of("::1", 4000)}), "::1:4000");
  EXPECT_EQ(master_of({.master_addr = flag("--master-addr", "127.0.0.2")}, 5000), "127.0.0.2:5000");
  EXPECT_EQ(master_of({.endpoint = endpoint_of("127.0.0.2", 4000), .local_addr = flag("--local-addr", "localhost")}),
            "localhost:4000")
      << "where workers are told to reach it";
  const RendezvousRequest anothers{
      .backend = backend_flag("c10d"), .endpoint = endpoint_of("127.0.0.2", 4000), .is_host = false};
  EXPECT_EQ(master_of(anothers), "127.0.0.1:0") << "the address is the others'";
}

TEST(MasterChoice, WaitsLongForTheNameOfAHostOnlyWhereItMayAppearLater) {
  LaunchRequest request = request_for_nodes("1", 2);
  request.rendezvous.endpoint = endpoint_of("node0", 29500);
  const auto patience = [&request](bool is_pod) {
    AllocatedNode node = cpu_node();
    node.is_pod = is_pod;
    return plan_of(request, node).rendezvous->name_timeout;
  };
  EXPECT_EQ(patience(false), Duration(10'000));
  EXPECT_EQ(patience(true), Duration(600'000)) << "between pods of Kubernetes";
  request.rendezvous.join_timeout = Duration(90'000);
  EXPECT_EQ(patience(false), Duration(90'000)) << "as the user asked";
  request.rendezvous.join_timeout.reset();
  request.rendezvous.manager_replaces_nodes = true;
  EXPECT_EQ(patience(false), Duration(600'000)) << "in the job of a manager";
}

LaunchRequest request_for_four(const RendezvousRequest& rendezvous) {
  LaunchRequest request = request_for_nodes("8", 4);
  request.rendezvous = rendezvous;
  return request;
}

TEST(MasterChoice, TakesIPv6sLoopbackForIPv4sWhereThereIsNoIPv6) {
  const auto host_of = [](std::vector<std::string> names, const std::string& host) {
    AllocatedNode node = cpu_node();
    node.also_named = std::move(names);
    return plan_of(request_for_four({.endpoint = endpoint_of(host, 4000)}), node).rendezvous->host;
  };
  EXPECT_EQ(host_of({"::1"}, "::1"), "::1");
  EXPECT_EQ(host_of({"0:0:0:0:0:0:0:1"}, "0:0:0:0:0:0:0:1"), "::1");
  EXPECT_EQ(host_of({}, "::1"), "127.0.0.1");
  EXPECT_EQ(host_of({}, "127.0.0.2"), "127.0.0.2");
}

std::vector<std::string> warnings_of(const RendezvousRequest& rendezvous, int master_port) {
  LaunchRequest request = request_for("2");
  request.rendezvous = rendezvous;
  request.master_port = {master_port, Source::kFlag, "--master-port"};
  AllocatedNode node = cpu_node();
  node.also_named = {"localhost"};
  return plan_of(request, node).warnings;
}

TEST(MasterChoice, SaysThatAnEndpointsPortWinsOverAnother) {
  const Setting<Endpoint> endpoint = endpoint_of("localhost", 4000);
  EXPECT_EQ(warnings_of({.endpoint = endpoint}, 5000),
            Warnings{"'--master-port 5000' is not used: the port of '--rdzv-endpoint localhost:4000' "
                     "is 4000"});
  EXPECT_EQ(warnings_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", {})}, 5000),
            Warnings{"'--master-port 5000' is not used: the port of '--rdzv-endpoint localhost' is "
                     "29400"});
  EXPECT_TRUE(warnings_of({.endpoint = endpoint}, 4000).empty()) << "they agree";
  EXPECT_TRUE(warnings_of({.endpoint = endpoint}, 0).empty()) << "any port would do";
}

TEST(MasterChoice, LeavesAnEndpointThatItDoesNotHostToOthers) {
  const RendezvousRequest anothers{
      .backend = backend_flag("c10d"), .endpoint = endpoint_of("localhost", 4000), .is_host = false};
  EXPECT_EQ(master_of(anothers), "127.0.0.1:0") << "the store is at a port of its own";
  EXPECT_THAT(warnings_of(anothers, 0),
              testing::ElementsAre(mentions({"'--rdzv-conf is_host=false'", "'--num-nodes'"})));
  const RendezvousRequest fixed{.endpoint = endpoint_of("localhost", 4000), .is_host = false};
  EXPECT_EQ(master_of(fixed), "127.0.0.1:4000") << "with the static backend it is where the workers' store is";
  EXPECT_TRUE(warnings_of(fixed, 0).empty());
}

TEST(MasterChoice, RefusesAnotherMachine) {
  EXPECT_EQ(master_of({.endpoint = endpoint_of("node0", 29400)}),
            "'--rdzv-endpoint node0:29400': 'node0' is not this machine, and this run has one node | leave it "
            "out, or write '--rdzv-endpoint localhost:29400'");
  EXPECT_EQ(master_of({.master_addr = flag("--master-addr", "10.0.0.9")}),
            "'--master-addr 10.0.0.9': '10.0.0.9' is not this machine, and this run has one node | leave it "
            "out, or write '--master-addr 127.0.0.1'");
  EXPECT_EQ(
      master_of({.endpoint = endpoint_of("localhost", {})}),
      "'--rdzv-endpoint localhost' has no port | write '--rdzv-endpoint localhost:29500', or '--master-port 29500' "
      "instead");
}

RendezvousPlan rendezvous_of(const RendezvousRequest& rendezvous) {
  AllocatedNode node = cpu_node();
  node.also_named = {"here"};
  return *plan_of(request_for_four(rendezvous), node).rendezvous;
}

TEST(MasterChoice, TakesHostAndPortOfTheEndpoint) {
  const RendezvousPlan there = rendezvous_of({.endpoint = endpoint_of("there", 4000)});
  EXPECT_EQ(there.host, "there");
  EXPECT_EQ(there.port, 4000);
  EXPECT_EQ(there.hosting, RendezvousPlan::Hosting::kNever);
  EXPECT_TRUE(there.workers_use_endpoint);
  EXPECT_EQ(there.min_nodes, 4);
  EXPECT_EQ(there.max_nodes, 4);
  const RendezvousPlan here = rendezvous_of({.backend = backend_flag("c10d"), .endpoint = endpoint_of("here", {})});
  EXPECT_EQ(here.port, 29400);
  EXPECT_EQ(here.hosting, RendezvousPlan::Hosting::kIfFree);
  EXPECT_FALSE(here.workers_use_endpoint);
  EXPECT_EQ(rendezvous_of({.master_addr = flag("--master-addr", "there")}).port, 29500);
  EXPECT_FALSE(plan_of(request_for("8"), cpu_node()).rendezvous) << "alone";
}

TEST(MasterChoice, LetsTheNodeWithRankZeroHostTheStaticRendezvous) {
  using Hosting = RendezvousPlan::Hosting;
  const auto hosting = [](int rank) {
    return rendezvous_of({.endpoint = endpoint_of("here", 4000), .node_rank = {rank, Source::kFlag, "--node-rank"}})
        .hosting;
  };
  EXPECT_EQ(hosting(0), Hosting::kMust);
  EXPECT_EQ(hosting(1), Hosting::kNever);
  EXPECT_EQ(rendezvous_of({.endpoint = endpoint_of("there", 4000), .is_host = true}).hosting, Hosting::kMust);
  EXPECT_EQ(rendezvous_of({.endpoint = endpoint_of("here", 4000), .is_host = false}).hosting, Hosting::kNever);
  EXPECT_TRUE(rendezvous_of({.endpoint = endpoint_of("here", 4000), .is_host = false}).leaves_endpoint);
}

TEST(MasterChoice, DoubtsANodeRankZeroOfAPersonWhoseEndpointIsNotKnownToBeHere) {
  const auto doubts = [](const char* host, Source source, int rank = 0) {
    return rendezvous_of({.endpoint = endpoint_of(host, 4000), .node_rank = {rank, source, "of somebody"}})
        .may_be_elsewhere;
  };
  EXPECT_TRUE(doubts("there", Source::kFlag));
  EXPECT_TRUE(doubts("there", Source::kEnvironment));
  EXPECT_FALSE(doubts("here", Source::kFlag));
  EXPECT_FALSE(doubts("localhost", Source::kFlag));
  EXPECT_FALSE(doubts("there", Source::kFlag, 1));
  EXPECT_FALSE(doubts("there", Source::kScheduler)) << "a manager names the host";
  AllocatedNode pod = cpu_node();
  pod.is_pod = true;
  const RendezvousRequest in_pod{.endpoint = endpoint_of("there", 4000), .node_rank = {0, Source::kFlag, "RANK"}};
  EXPECT_FALSE(plan_of(request_for_four(in_pod), pod).rendezvous->may_be_elsewhere) << "a service has other addresses";
}

TEST(MasterChoice, TriesToReachTheRendezvousAsLongAsItWaitsForOthers) {
  const RendezvousPlan given = rendezvous_of({.endpoint = endpoint_of("there", 1), .join_timeout = Duration(7000)});
  EXPECT_EQ(given.connect_timeout, Duration(7000));
  const RendezvousPlan shorter = rendezvous_of(
      {.endpoint = endpoint_of("there", 1), .join_timeout = Duration(7000), .connect_timeout = Duration(1000)});
  EXPECT_EQ(shorter.connect_timeout, Duration(1000));
}

TEST(MasterChoice, SaysWhatToTypeForSeveralNodes) {
  const auto refusal = [](const RendezvousRequest& rendezvous) {
    const LaunchRequest request = request_for_four(rendezvous);
    return refusal_of([&] { require_endpoint(plan_of(request, cpu_node()), request, {}); });
  };
  EXPECT_THAT(refusal({}), mentions({"4 nodes", "'--rdzv-endpoint HOST:29500'"}));
  Environment environment;
  environment.set("MASTER_ADDR", "node0");
  LaunchRequest request = request_for_four({});
  EXPECT_THAT(refusal_of([&] { require_endpoint(plan_of(request, cpu_node()), request, environment); }),
              mentions({"'--rdzv-endpoint node0:29500', as MASTER_ADDR names it"}));
  environment.set("MASTER_PORT", "tcp://10.0.0.1:80");
  EXPECT_THAT(refusal_of([&] { require_endpoint(plan_of(request, cpu_node()), request, environment); }),
              mentions({"'--rdzv-endpoint node0:29500', as MASTER_ADDR names it"}));
  environment.set("MASTER_PORT", "56119");
  EXPECT_THAT(refusal_of([&] { require_endpoint(plan_of(request, cpu_node()), request, environment); }),
              mentions({"'--rdzv-endpoint node0:56119', as MASTER_ADDR and MASTER_PORT name it"}));
  request.num_nodes = {4, Source::kEnvironment, "PET_NNODES"};
  EXPECT_THAT(refusal_of([&] { require_endpoint(plan_of(request, cpu_node()), request, {}); }),
              mentions({"no rendezvous endpoint for 4 nodes, which 'PET_NNODES' asks for"}));
  EXPECT_EQ(
      refusal({.endpoint = endpoint_of("there", {})}),
      "'--rdzv-endpoint there' has no port | write '--rdzv-endpoint there:29500', or '--master-port 29500' instead");
  EXPECT_EQ(refusal({.endpoint = endpoint_of("there", 1), .node_rank = {4, Source::kFlag, "--node-rank"}}),
            "'--node-rank 4': there is no such node | this run has the node ranks 0 to 3");
  EXPECT_THAT(refusal({.endpoint = endpoint_of("there", 0)}),
              mentions({"'--rdzv-endpoint there:0'", "'--rdzv-endpoint there:29400'"}));
  LaunchRequest any_port = request_for_four({.master_addr = flag("--master-addr", "there")});
  any_port.master_port = {0, Source::kFlag, "--master-port"};
  EXPECT_THAT(refusal_of([&] { plan_of(any_port, cpu_node()); }),
              mentions({"'--master-port 0'", "'--master-port 29500'"}));
}

TEST(MasterChoice, TakesTorchrunsAnyPortForAJobThatMayBeginAlone) {
  LaunchRequest request = request_for_four({.backend = backend_flag("c10d"), .endpoint = endpoint_of("there", 0)});
  request.compat = Compat::kTorchrun;
  request.min_nodes = 1;
  EXPECT_EQ(plan_of(request, cpu_node()).rendezvous->port, 0);
  request.min_nodes = 2;
  EXPECT_THROW((void)plan_of(request, cpu_node()), UserError);
}

TEST(MasterChoice, SaysThatAnEndpointsPortWinsAlsoWithSeveralNodes) {
  LaunchRequest request = request_for_four({.endpoint = endpoint_of("there", 4000)});
  request.master_port = {5000, Source::kFlag, "--master-port"};
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_EQ(plan.rendezvous->port, 4000);
  EXPECT_EQ(plan.warnings, Warnings{"'--master-port 5000' is not used: the port of '--rdzv-endpoint "
                                    "there:4000' is 4000"});
}

TEST(MasterChoice, WarnsOfAnAddressThatThisHostDoesNotHave) {
  AllocatedNode node = cpu_node();
  node.also_named = {"there", "198.51.100.7"};
  RendezvousRequest rendezvous{.endpoint = {{"there", 4000}, Source::kFlag, "--rdzv-endpoint"}};
  rendezvous.local_addr = flag("--local-addr", "1.2.3.4");
  EXPECT_THAT(plan_of(request_for_four(rendezvous), node).warnings,
              testing::ElementsAre(mentions({"'--local-addr 1.2.3.4'", "'host'"})));
  rendezvous.local_addr.value = "198.51.100.7";
  EXPECT_EQ(plan_of(request_for_four(rendezvous), node).warnings, Warnings());
}

TEST(MasterChoice, ThatIsOnlyPrintedWarnsOfAMissingEndpoint) {
  LaunchRequest request = request_for_four({});
  EXPECT_EQ(plan_of(request, cpu_node()).warnings, Warnings()) << "the run itself is refused";
  request.dry_run = DryRun::kText;
  EXPECT_THAT(plan_of(request, cpu_node()).warnings,
              testing::ElementsAre(mentions({"4 nodes", "'--rdzv-endpoint HOST:29500'"})));
  Allocation script{{cpu_node()}, "Slurm job 12", "SLURM_JOB_ID without SLURM_STEP_ID"};
  script.nodes_to_start = 4;
  EXPECT_EQ(make_plan(request, Environment(), script, {true, ""}, "demo").warnings, Warnings())
      << "lrun tells those that it starts";
  request.rendezvous.endpoint = {{"there", 4000}, Source::kFlag, "--rdzv-endpoint"};
  EXPECT_EQ(plan_of(request, cpu_node()).warnings, Warnings());
}

/// Of a job of four nodes, which has a name.
LaunchRequest request_with_etcd(const RendezvousRequest& rendezvous) {
  LaunchRequest request = request_for_nodes("2", 4);
  request.rendezvous = rendezvous;
  request.rendezvous.backend = backend_flag("etcd-v2");
  request.rdzv_id = "my-job";
  return request;
}

TEST(MasterChoice, FindsTheRendezvousThroughEtcd) {
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
  EXPECT_THAT(refusal_of([&] { plan_of(request, node); }),
              mentions({"'--rdzv-backend etcd-v2'", "'--rdzv-id my-job'"}));
  EXPECT_THAT(refusal_of([&] { require_endpoint(plan_of(request_with_etcd({}), node), request_with_etcd({}), {}); }),
              mentions({"'--rdzv-backend etcd'", "'--rdzv-endpoint HOST:2379'"}));
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

TEST(MasterChoice, AsksAnEtcdOverTlsWhereThatIsSaid) {
  const EtcdTls files{.authorities = "ca.pem"};
  RendezvousRequest asked{.endpoint = endpoint_of("there", {}), .etcd_is_asked_over_tls = true, .etcd_tls = files};
  EXPECT_EQ(plan_of(request_with_etcd(asked), cpu_node()).rendezvous->etcd_tls, files);
  asked.etcd_is_asked_over_tls = false;
  const LaunchPlan plain = plan_of(request_with_etcd(asked), cpu_node());
  EXPECT_EQ(plain.rendezvous->etcd_tls, std::nullopt);
  EXPECT_THAT(plain.warnings.at(0), mentions({"'--rdzv-conf'", "'protocol=https'"}));
  asked.etcd_tls = {.key = "own.key"};
  EXPECT_THAT(refusal_of([&] { plan_of(request_with_etcd(asked), cpu_node()); }),
              mentions({"'--rdzv-conf key=own.key'", "'protocol=https,cert=client.pem,key=client.key'"}));
}

TEST(MasterChoice, AsksNoEtcdForOneNode) {
  LaunchRequest request = request_for("8");
  request.rendezvous = {.backend = backend_flag("etcd"), .endpoint = endpoint_of("there", 2379)};
  const LaunchPlan plan = plan_of(request, cpu_node());
  EXPECT_FALSE(plan.rendezvous);
  EXPECT_EQ(plan.master_addr, "127.0.0.1");
  EXPECT_FALSE(plan.master_port) << "a free one";
}

}  // namespace
}  // namespace lrun::launcher
