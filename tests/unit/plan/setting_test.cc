#include "plan/setting.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

TEST(AsWritten, IsTheUsersOwnSpelling) {
  EXPECT_EQ(as_written(flag("-n", "4")), "-n 4");
  EXPECT_EQ(as_written(Setting<std::string>{"4", Source::kEnvironment, "PET_NPROC_PER_NODE"}), "PET_NPROC_PER_NODE=4");
  EXPECT_EQ(as_written(devices_flag("1,")), "--devices 1,");
  EXPECT_EQ(as_written(flag(origin_of_host("-H", "node1"), "4")), "-H node1:4");
  EXPECT_EQ(as_written(flag(origin_of_host("--include", "node1"), "1,")), "--include node1:1");
  EXPECT_EQ(as_written(Setting<std::string>{"4", Source::kConfig, "a, b.toml:1: grace"}), "a, b.toml:1: grace=4");
  EXPECT_EQ(as_written(flag(origin_of_host("hosts.txt", "node1"), "4")), "hosts.txt: node1:4");
}

}  // namespace
}  // namespace lrun::launcher
