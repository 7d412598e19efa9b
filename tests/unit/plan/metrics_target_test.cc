#include "plan/metrics_target.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

TEST(MetricsTarget, IsAPortOfTheLoopbackAddress) {
  EXPECT_EQ(parse_metrics_target("9844"), (MetricsTarget{.address = "127.0.0.1", .port = 9844}));
  EXPECT_EQ(parse_metrics_target("0"), (MetricsTarget{.address = "127.0.0.1", .port = 0}));
  EXPECT_EQ(parse_metrics_target("65535"), (MetricsTarget{.address = "127.0.0.1", .port = 65535}));
  for (const char* wrong : {"65536", "-1", "", " ", "9844s", "0x10", "99999999999999999999"}) {
    EXPECT_EQ(parse_metrics_target(wrong), std::nullopt) << wrong;
  }
}

TEST(MetricsTarget, IsANumericAddressWithAPort) {
  EXPECT_EQ(parse_metrics_target("0.0.0.0:9844"), (MetricsTarget{.address = "0.0.0.0", .port = 9844}));
  EXPECT_EQ(parse_metrics_target("[::]:9844"), (MetricsTarget{.address = "::", .port = 9844}));
  EXPECT_EQ(parse_metrics_target("localhost:0"), (MetricsTarget{.address = "127.0.0.1", .port = 0}));
  for (const char* wrong : {"10.0.0.1", "node3:9844", "10.0.0.1:", ":9844", "[::1]", "10.0.0.1:70000"}) {
    EXPECT_EQ(parse_metrics_target(wrong), std::nullopt) << wrong << ": no name service is asked";
  }
}

TEST(MetricsTarget, IsTheFileOfAPath) {
  for (const char* path : {"./metrics", "/var/lib/node_exporter/lrun.prom", "lrun.prom", "a/b"}) {
    EXPECT_EQ(parse_metrics_target(path), (MetricsTarget{.file = path}));
  }
  EXPECT_EQ(parse_metrics_target("metrics"), std::nullopt);
  EXPECT_EQ(parse_metrics_target("train.py"), std::nullopt);
}

TEST(MetricsTarget, MayBeGivenAsTheEndOfItsAddress) {
  EXPECT_EQ(parse_metrics_target("9844/metrics"), (MetricsTarget{.address = "127.0.0.1", .port = 9844}));
  EXPECT_EQ(parse_metrics_target("0.0.0.0:9844/metrics"), (MetricsTarget{.address = "0.0.0.0", .port = 9844}));
  EXPECT_EQ(parse_metrics_target("./metrics"), (MetricsTarget{.file = "./metrics"}));
}

TEST(MetricsTarget, IsSwitchedOffByDevNull) {
  EXPECT_EQ(parse_metrics_target("/dev/null"), MetricsTarget{});
  EXPECT_FALSE(MetricsTarget{}.is_given());
}

TEST(MetricsTarget, IsShownAsItCanBeGiven) {
  for (const char* text : {"127.0.0.1:9844", "[::1]:80", "./lrun.prom"}) {
    EXPECT_EQ(text_of(*parse_metrics_target(text)), text);
  }
}

}  // namespace
}  // namespace lrun::launcher
