#include "cluster/local_host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cluster/detect.h"
#include "cluster/usable_cpus.h"

namespace lrun::launcher {
namespace {

TEST(LocalHost, IsThisMachine) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  const AllocatedNode node = local_host({.cpus = true}, Environment());
  EXPECT_EQ(node.name, name);
  EXPECT_EQ(node.cpus, usable_cpus());
}

TEST(LocalHost, AsksTheDriverOnlyWhenToldTo) {
  EXPECT_EQ(local_host({}, Environment()).gpus.answer, GpuAnswer::kNotAsked);
  EXPECT_NE(local_host({.gpus = true}, Environment()).gpus.answer, GpuAnswer::kNotAsked);
}

TEST(DetectAllocation, IsThisHostAndSaysWhy) {
  const Allocation allocation = detect_allocation({}, Environment());
  EXPECT_EQ(allocation.nodes, std::vector<AllocatedNode>{local_host({}, Environment())});
  EXPECT_EQ(allocation.source, "this host");
  EXPECT_NE(allocation.reason, "");
}

}  // namespace
}  // namespace lrun::launcher
