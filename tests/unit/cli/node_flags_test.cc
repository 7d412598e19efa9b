#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

TEST(NodeFlags, RefuseWrongValuesWithAWayOut) {
  expect_refused({
      {"--rdzv-backend=ectd", {"'--rdzv-backend ectd'", "allowed: static, c10d, etcd, etcd-v2", "'etcd'"}},
      {"--rdzv-conf=store_type=file",
       {"'--rdzv-conf store_type=file'", "'file'", "'store_type'", "'--rdzv-endpoint HOST:29400'"}},
      {"--rdzv-conf=protocol=tls", {"'--rdzv-conf protocol=tls'", "'protocol'", "'--rdzv-conf protocol=https'"}},
      {"--node-rank=-1", {"'--node-rank -1'", "allowed: 0 to 65535", "'--node-rank 0'"}},
      {"-Ha:4,b:x", {"'-H a:4,b:x'", "'b:x'", "1", "65536", "'a:4'", "4 workers", "'bob@a:4'"}},
      {"--hostfile=", {"'--hostfile='", "'--hostfile hosts.txt'"}},
      {"--ssh='ssh", {"--ssh", "'ssh'"}},
  });
}

TEST(NodeFlags, AreNotThoseOfTheOtherLrunOfLlnl) {
  EXPECT_THAT(refusal({"-T4", "-N2", "p"}), mentions({"'-T4'", "'--num-nodes 2 --nproc-per-node 4'"}));
  EXPECT_THAT(refusal({"--smpiargs=-gpu", "p"}), mentions({"leave it out", "LLNL's other lrun"}));
}

TEST(NodeFlags, RefuseAnEndpointThatCannotBeRead) {
  const std::pair<std::string, std::string> endpoints[] = {{":123", "the host before ':' is missing"},
                                                           {"localhost:", "the port behind ':' is missing"},
                                                           {"localhost:65536", "'65536' is not a port; allowed: 1 to"},
                                                           {"localhost:x", "'x' is not a port"},
                                                           {"[::1]:-1", "'-1' is not a port"},
                                                           {"~:29400", "not HOST:PORT"},
                                                           {"a b:1", "not HOST:PORT"},
                                                           {"local/host:1", "not HOST:PORT"},
                                                           {"[::1", "not HOST:PORT"}};
  for (const auto& [endpoint, why] : endpoints) {
    EXPECT_THAT(refusal({"--rdzv-endpoint=" + endpoint, "p"}),
                mentions({"'--rdzv-endpoint " + endpoint + "'", why, "'--rdzv-endpoint localhost:29400'"}));
  }
}

TEST(NodeFlags, RefuseAnEndpointOfSeveralHostsAndNameTheFirst) {
  EXPECT_EQ(refusal({"--rdzv-endpoint", "n[07-09,12]:29500", "p"}),
            "lrun: error: '--rdzv-endpoint n[07-09,12]:29500': names several hosts; all nodes meet at one of them\n"
            "lrun: hint: for example '--rdzv-endpoint n07:29500'\n");
}

TEST(NodeFlags, RefuseAUrlAndNameTheEndpointInIt) {
  EXPECT_EQ(refusal({"--rdzv-endpoint", "http://node0:29500/", "p"}),
            "lrun: error: '--rdzv-endpoint http://node0:29500/': it is a URL, and not HOST:PORT\n"
            "lrun: hint: for example '--rdzv-endpoint node0:29500'\n");
}

TEST(NodeFlags, RefuseAPortBehindAnAddressInARunOfAnySize) {
  EXPECT_EQ(refusal({"--num-nodes=2", "--master_addr", "node0:29500", "p"}),
            "lrun: error: '--master_addr node0:29500': no name of a host\n"
            "lrun: hint: the port stands in '--master_port 29500'\n");
  EXPECT_EQ(refusal({"--num-nodes=2", "--local-addr", "node0:29500", "p"}),
            "lrun: error: '--local-addr node0:29500': no name of a host\n"
            "lrun: hint: leave the port out: '--local-addr node0'\n");
}

TEST(NodeFlags, RefuseBracketsAroundAnythingButAnAddress) {
  for (const std::string address : {"[::1", "[node0]", "[::1]:29500"}) {
    EXPECT_THAT(refusal({"--master-addr", address, "p"}),
                mentions({"'--master-addr " + address + "'", "'--master-addr [fd00::1]'"}));
  }
}

TEST(NodeFlags, KeepWhereLaunchersMeet) {
  const RendezvousRequest rendezvous =
      request_of({"--rdzv-backend", "C10D", "--rdzv-endpoint", " [::1]:29400 ", "--master-addr=a", "--local-addr=b",
                  "--rdzv-conf=join_timout=5,read_timeout=60", "p"})
          .rendezvous;
  EXPECT_EQ(rendezvous.backend, by_flag(RendezvousBackend::kC10d, "--rdzv-backend"));
  EXPECT_EQ(rendezvous.endpoint, by_flag(Endpoint{"::1", 29400}, "--rdzv-endpoint"));
  EXPECT_EQ(rendezvous.master_addr, by_flag<std::string>("a", "--master-addr"));
  EXPECT_EQ(rendezvous.local_addr, by_flag<std::string>("b", "--local-addr"));
  EXPECT_EQ(rendezvous.warnings,
            Words{"'--rdzv-conf join_timout=5,read_timeout=60': 'join_timout' is unknown and ignored; did you mean "
                  "'join_timeout'?"});
}

TEST(NodeFlags, TakeAddressesOfIPv6InBracketsAndOutOfThem) {
  for (const char* const address : {"[fd00::1]", " [fd00::1] ", "fd00::1"}) {
    const RendezvousRequest asked = request_of({"--master-addr", address, "--local-addr", address, "p"}).rendezvous;
    EXPECT_EQ(asked.master_addr.value, "fd00::1") << address;
    EXPECT_EQ(asked.local_addr.value, "fd00::1") << address;
  }
  EXPECT_EQ(request_of({"--rdzv-endpoint", "[fd00::1]", "p"}).rendezvous.endpoint.value,
            (Endpoint{"fd00::1", std::nullopt}));
}

TEST(NodeFlags, TakeTheMembersOfAnEtcd) {
  const RendezvousRequest asked =
      request_of({"--rdzv-backend=ETCD-v2", "--rdzv-endpoint=a,b:3, [::1]:4", "p"}).rendezvous;
  EXPECT_TRUE(asked.uses_etcd());
  EXPECT_EQ(asked.endpoint.value, (Endpoint{"a", std::nullopt}));
  EXPECT_EQ(asked.more_endpoints, (std::vector<Endpoint>{{"b", 3}, {"::1", 4}}));
  EXPECT_NE(refusal({"--rdzv-endpoint=a,,b", "p"}), "(accepted)");
}

TEST(NodeFlags, TakeARankOfTheNode) {
  EXPECT_EQ(request_of({"--node-rank", "3", "p"}).rendezvous.node_rank, by_flag(3, "--node-rank"));
}

}  // namespace
}  // namespace lrun::launcher
