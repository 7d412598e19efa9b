#include "plan/backend_choice.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

using enum DeviceKind;

Setting<std::optional<GroupBackend>> asked(const std::string& name) {
  return {value_in(kGroupBackends, name).value(), Source::kFlag, "--process_group_backend"};
}

TEST(ChooseBackend, FollowsTheHardware) {
  const Setting<std::optional<GroupBackend>> automatic;
  EXPECT_EQ(text_of(choose_backend(automatic, kGpu, 1).value), "nccl");
  EXPECT_EQ(text_of(choose_backend(automatic, kGpu, 4).value), "nccl");
  EXPECT_EQ(text_of(choose_backend(automatic, kCpu, 1).value), "shm");
  EXPECT_EQ(text_of(choose_backend(automatic, kCpu, 4).value), "shm+gloo");
}

TEST(ChooseBackend, KeepsWhatWorks) {
  EXPECT_EQ(as_written(choose_backend(asked("gloo"), kCpu, 1)), as_written(asked("gloo")));
  EXPECT_EQ(as_written(choose_backend(asked("gloo"), kGpu, 2)), as_written(asked("gloo")));
  EXPECT_EQ(as_written(choose_backend(asked("shm"), kCpu, 1)), as_written(asked("shm")));
  EXPECT_EQ(as_written(choose_backend(asked("gloo"), kCpu, 4)), as_written(asked("gloo")));
  EXPECT_EQ(as_written(choose_backend(asked("shm+gloo"), kCpu, 1)), as_written(asked("shm+gloo")));
  EXPECT_EQ(as_written(choose_backend(asked("nccl"), kGpu, 1)), as_written(asked("nccl")));
}

TEST(ChooseBackend, RefusesWhatCannotWorkHere) {
  EXPECT_EQ(
      refusal_of([] { choose_backend(asked("nccl"), kCpu, 1); }),
      "process group backend 'nccl' works on GPUs, and this run is on CPUs | use 'shm' or 'gloo', or leave it out");
  EXPECT_NE(refusal_of([] { choose_backend(asked("shm"), kGpu, 1); }), "");
  EXPECT_EQ(
      refusal_of([] { choose_backend(asked("shm"), kCpu, 2); }),
      "process group backend 'shm' is for CPUs of one node, and this run is on 2 nodes | use 'shm+gloo', or leave "
      "it out");
  EXPECT_EQ(refusal_of([] { choose_backend(asked("shm+gloo"), kGpu, 2); }),
            "process group backend 'shm+gloo' is for CPUs, and this run is on GPUs | use 'nccl', or leave it out");
}

}  // namespace
}  // namespace lrun::launcher
