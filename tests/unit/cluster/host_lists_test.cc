#include "cluster/host_lists.h"

#include <gtest/gtest.h>

#include "unit/cluster/manager_view.h"

namespace lrun::launcher {
namespace {

using Hosts = std::vector<std::string>;

TEST(HostsInLines, AreTheFirstWordsEachOnce) {
  EXPECT_EQ(hosts_in_lines("h1\nh1\nh2\nh2\n"), (Hosts{"h1", "h2"})) << "PBS";
  EXPECT_EQ(hosts_in_lines("h2 2 all.q@h2 UNDEFINED\r\nh1 2 all.q@h1 UNDEFINED"), (Hosts{"h2", "h1"})) << "Grid Engine";
  EXPECT_EQ(hosts_in_lines("# all\n\n  h1 # the first\n"), (Hosts{"h1"}));
  EXPECT_EQ(hosts_in_lines(""), Hosts());
}

TEST(HostsInPairs, AreTheNamesBeforeTheirSlots) {
  EXPECT_EQ(hosts_in_pairs("h1 4 h2 4 "), (Hosts{"h1", "h2"}));
  EXPECT_EQ(hosts_in_pairs("h1 4 h2"), Hosts());
  EXPECT_EQ(hosts_in_pairs("h1 h1 h2"), Hosts());
  EXPECT_EQ(hosts_in_pairs(""), Hosts());
}

TEST(ListedHosts, AreThoseOfPbsLsfAndGridEngine) {
  FakeNode pbs({{"PBS_NODEFILE", "/nodes"}});
  pbs.with_file("/nodes", "h1\nh1\nh2\nh2\n");
  EXPECT_EQ(find_listed_hosts(pbs.view()), (ListedHosts{"PBS", "PBS_NODEFILE", {"h1", "h2"}}));
  const FakeNode lsf({{"LSB_MCPU_HOSTS", "h1 4 h2 4"}, {"LSB_DJOB_HOSTFILE", "/none"}});
  EXPECT_EQ(find_listed_hosts(lsf.view()), (ListedHosts{"LSF", "LSB_MCPU_HOSTS", {"h1", "h2"}}));
  FakeNode sge({{"PE_HOSTFILE", "/hosts"}});
  sge.with_file("/hosts", "h1 2 all.q@h1 UNDEFINED\nh2 2 all.q@h2 UNDEFINED\n");
  EXPECT_EQ(find_listed_hosts(sge.view()), (ListedHosts{"Grid Engine", "PE_HOSTFILE", {"h1", "h2"}}));
}

TEST(ListedHosts, OfLsfWithCsmLeaveOutTheLaunchNode) {
  FakeNode node({{"LSB_MCPU_HOSTS", "batch1 1 c1 42 c2 42"}, {"CSM_ALLOCATION_ID", "77"}});
  EXPECT_EQ(find_listed_hosts(node.view()), (ListedHosts{"LSF", "LSB_MCPU_HOSTS", {"c1", "c2"}}));
  EXPECT_EQ(find_listed_hosts(node.with("LSB_MCPU_HOSTS", "batch1 1 c1 42").view()), std::nullopt) << "one is a job's";
  EXPECT_NE(find_listed_hosts(node.without("CSM_ALLOCATION_ID").view()), std::nullopt) << "usual hosts";
}

TEST(ListedHosts, OfOneHostOrAWorkerAreNone) {
  FakeNode pbs({{"PBS_NODEFILE", "/nodes"}});
  EXPECT_EQ(find_listed_hosts(pbs.view()), std::nullopt) << "the file cannot be read";
  pbs.with_file("/nodes", "h1\nh1\n");
  EXPECT_EQ(find_listed_hosts(pbs.view()), std::nullopt);
  pbs.with_file("/nodes", "h1\nh2\n");
  EXPECT_NE(find_listed_hosts(pbs.view()), std::nullopt);
  EXPECT_EQ(find_listed_hosts(pbs.with("LRUN_RUN_ID", "x").view()), std::nullopt);
}

}  // namespace
}  // namespace lrun::launcher
