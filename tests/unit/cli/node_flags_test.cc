#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

using Words = std::vector<std::string>;

TEST(NodeFlags, RefuseWrongValuesWithAWayOut) {
  expect_refused({
      {"--rdzv-backend=ectd",
       "lrun: error: '--rdzv-backend ectd': no such rendezvous backend; allowed: static, c10d, etcd, etcd-v2\n"
       "lrun: hint: did you mean 'etcd'?\n"},
      {"--rdzv-conf=store_type=file",
       "lrun: error: '--rdzv-conf store_type=file': launchers meet over TCP, and not through a store of type 'file'\n"
       "lrun: hint: leave 'store_type' out, and give '--rdzv-endpoint HOST:29400' on every node\n"},
      {"--rdzv-conf=protocol=tls",
       "lrun: error: '--rdzv-conf protocol=tls': 'protocol' is neither http nor https\n"
       "lrun: hint: for example '--rdzv-conf protocol=https'\n"},
      {"--node-rank=-1",
       "lrun: error: '--node-rank -1': out of range; allowed: 0 to 65535\n"
       "lrun: hint: for example '--node-rank 0'\n"},
      {"-Ha:4,b:x",
       "lrun: error: '-H a:4,b:x': 'b:x' has no number of workers from 1 to 65536\n"
       "lrun: hint: write 'a:4' for host a with 4 workers, 'bob@a:4' for user bob\n"},
      {"--hostfile=",
       "lrun: error: '--hostfile=': the name of a file is missing\n"
       "lrun: hint: for example '--hostfile hosts.txt'\n"},
      {"--ssh='ssh",
       "lrun: error: '--ssh 'ssh': a quote is not closed, or a backslash protects nothing\n"
       "lrun: hint: quote as for a shell\n"},
      {"--monitor-interval=0",
       "lrun: error: '--monitor-interval 0': not a number of seconds above 0\n"
       "lrun: hint: for example '--monitor-interval 0.1'\n"},
      {"--monitor-interval=soon",
       "lrun: error: '--monitor-interval soon': not a number of seconds above 0\n"
       "lrun: hint: for example '--monitor-interval 0.1'\n"},
      {"--start-method=thread",
       "lrun: error: '--start-method thread': no such choice; allowed: spawn, fork, forkserver\n"
       "lrun: hint: for example '--start-method spawn'\n"},
  });
}

TEST(NodeFlags, RefuseAnEndpointThatCannotBeRead) {
  for (const std::string endpoint : {":123", "~:29400", "localhost:", "localhost:65536", "localhost:x", "a b:1",
                                     "local/host:1", "[::1", "localhost:-1"}) {
    EXPECT_EQ(refusal({"--rdzv-endpoint=" + endpoint, "p"}),
              "lrun: error: '--rdzv-endpoint " + endpoint +
                  "': not HOST:PORT; an IPv6 address stands in brackets\n"
                  "lrun: hint: for example '--rdzv-endpoint localhost:29400'\n");
  }
}

TEST(NodeFlags, RefuseBracketsAroundAnythingButAnAddress) {
  for (const std::string address : {"[::1", "[node0]", "[::1]:29500"}) {
    EXPECT_EQ(refusal({"--master-addr", address, "p"}), "lrun: error: '--master-addr " + address +
                                                            "': neither a host's name nor an address\n"
                                                            "lrun: hint: for example '--master-addr [fd00::1]'\n");
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

}  // namespace
}  // namespace lrun::launcher
