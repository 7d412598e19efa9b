#include "runtime/session/backend_choice.h"

#include <gtest/gtest.h>

namespace lrun::detail {
namespace {

const at::Device kGpu("cuda:0");

std::string chosen(const std::string& of_program, const std::string& of_launcher, at::Device device, int world_size) {
  World world;
  world.world_size = world_size;
  world.backend = of_launcher;
  SessionOptions options;
  options.backend = of_program;
  return choose_session_backend(world, options, device);
}

TEST(SessionBackend, IsNcclWhereGpusOfSeveralRanksMeet) {
  EXPECT_EQ(chosen("", "", kGpu, 2), "nccl");
  EXPECT_EQ(chosen("auto", "", kGpu, 2), "nccl");
  EXPECT_EQ(chosen("", "", at::kCPU, 2), "");
  EXPECT_EQ(chosen("auto", "", at::Device("xpu:0"), 2), "auto");
}

TEST(SessionBackend, IsTheProgramsElseTheLaunchers) {
  EXPECT_EQ(chosen("gloo", "", kGpu, 2), "gloo");
  EXPECT_EQ(chosen("", "gloo", kGpu, 2), "gloo");
  EXPECT_EQ(chosen("shm", "gloo", kGpu, 2), "shm");
}

TEST(SessionBackend, OfARankThatIsAloneNeedsNoStore) {
  EXPECT_EQ(chosen("", "", kGpu, 1), "");
  EXPECT_EQ(chosen("nccl", "", kGpu, 1), "nccl");
  for (const char* const with_store : {"shm", "gloo", "shm+gloo"}) EXPECT_EQ(chosen(with_store, "", kGpu, 1), "single");
}

}  // namespace
}  // namespace lrun::detail
