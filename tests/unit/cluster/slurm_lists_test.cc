#include "cluster/slurm_lists.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lrun::launcher {
namespace {

using Hosts = std::vector<std::string>;
using Counts = std::vector<int>;

TEST(SlurmHosts, AreExpandedAsScontrolDoes) {
  EXPECT_EQ(parse_slurm_hosts("a[01-03,7],b5"), (Hosts{"a01", "a02", "a03", "a7", "b5"}));
  EXPECT_EQ(parse_slurm_hosts("rack[1-2]n[08-10]"),
            (Hosts{"rack1n08", "rack1n09", "rack1n10", "rack2n08", "rack2n09", "rack2n10"}));
  EXPECT_EQ(parse_slurm_hosts("n[1-2]-ib[0-1]"), (Hosts{"n1-ib0", "n1-ib1", "n2-ib0", "n2-ib1"}));
  EXPECT_EQ(parse_slurm_hosts("x[001-003,010]"), (Hosts{"x001", "x002", "x003", "x010"}));
  EXPECT_EQ(parse_slurm_hosts("n[3,1-2]"), (Hosts{"n3", "n1", "n2"})) << "their order is kept";
  EXPECT_EQ(parse_slurm_hosts("n1.example.com,n2.example.com"), (Hosts{"n1.example.com", "n2.example.com"}));
  EXPECT_EQ(parse_slurm_hosts("alpha"), Hosts{"alpha"});
  EXPECT_EQ(parse_slurm_hosts("1.2.3.[100-101]"), (Hosts{"1.2.3.100", "1.2.3.101"}));
  EXPECT_EQ(parse_slurm_hosts("a, b"), (Hosts{"a", "b"})) << "some write blanks";
}

TEST(SlurmHosts, ThatAreNoListAreRefused) {
  for (const char* const text : {"", ",", "a,", "a,,b", "a[", "a[1", "a]1", "a[]", "a[,1]", "a[2-1]", "a[1-]", "a[-2]",
                                 "a[x]", "a[1-2-3]", "a b", "a/b", "a[1]]", "a[99999999999]"}) {
    EXPECT_EQ(parse_slurm_hosts(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(SlurmHosts, OfAListLikeABombAreRefused) {
  EXPECT_EQ(parse_slurm_hosts("a[1-65536]")->size(), kMostSlurmEntries);
  for (const char* const text :
       {"a[0-65536]", "a[0-4294967295]", "a[0-299]b[0-299]", "a[0-65535],b", "a[0-99]b[0-99]c[0-99]d[0-99]e[0-99]"}) {
    EXPECT_EQ(parse_slurm_hosts(text), std::nullopt) << text;
  }
}

TEST(SlurmCounts, AreExpanded) {
  EXPECT_EQ(parse_slurm_counts("2(x3),1"), (Counts{2, 2, 2, 1}));
  EXPECT_EQ(parse_slurm_counts("3,1(x2)"), (Counts{3, 1, 1}));
  EXPECT_EQ(parse_slurm_counts("1(x2)"), (Counts{1, 1}));
  EXPECT_EQ(parse_slurm_counts("4"), Counts{4});
}

TEST(SlurmCounts, ThatAreNoListAreRefused) {
  for (const char* const text :
       {"", ",", "1,", "x", "1(x", "1(x)", "1(x0)", "1(2)", "(x2)", "-1", "1(x2)3", "1(x65537)", "1(x65536),1"}) {
    EXPECT_EQ(parse_slurm_counts(text), std::nullopt) << "'" << text << "'";
  }
}

}  // namespace
}  // namespace lrun::launcher
