#include "plan/backend_choice.h"

#include <gtest/gtest.h>

#include "planning.h"

namespace lrun::launcher {
namespace {

Setting<std::string> asked(const std::string& name) { return flag("--process_group_backend", name); }

TEST(ChooseBackend, FollowsTheHardware) {
  const Setting<std::string> automatic{"auto", Source::kDefault, ""};
  EXPECT_EQ(choose_backend(automatic, "gpu", 1).value, "nccl");
  EXPECT_EQ(choose_backend(automatic, "gpu", 4).value, "nccl");
  EXPECT_EQ(choose_backend(automatic, "cpu", 1).value, "shm");
  EXPECT_EQ(choose_backend(automatic, "cpu", 4).value, "shm+gloo");
}

TEST(ChooseBackend, KeepsWhatWorks) {
  EXPECT_EQ(choose_backend(asked("gloo"), "cpu", 1), asked("gloo"));
  EXPECT_EQ(choose_backend(asked("gloo"), "gpu", 2), asked("gloo"));
  EXPECT_EQ(choose_backend(asked("shm"), "cpu", 1), asked("shm"));
  EXPECT_EQ(choose_backend(asked("gloo"), "cpu", 4), asked("gloo"));
  EXPECT_EQ(choose_backend(asked("shm+gloo"), "cpu", 1), asked("shm+gloo"));
  EXPECT_EQ(choose_backend(asked("nccl"), "gpu", 1), asked("nccl"));
}

TEST(ChooseBackend, RefusesWhatCannotWorkHere) {
  EXPECT_EQ(
      refusal_of([] { choose_backend(asked("nccl"), "cpu", 1); }),
      "process group backend 'nccl' works on GPUs, and this run is on CPUs | use 'shm' or 'gloo', or leave it out");
  EXPECT_NE(refusal_of([] { choose_backend(asked("shm"), "gpu", 1); }), "");
  EXPECT_EQ(
      refusal_of([] { choose_backend(asked("shm"), "cpu", 2); }),
      "process group backend 'shm' is for CPUs of one node, and this run is on 2 nodes | use 'shm+gloo', or leave "
      "it out");
  EXPECT_EQ(refusal_of([] { choose_backend(asked("shm+gloo"), "gpu", 2); }),
            "process group backend 'shm+gloo' is for CPUs, and this run is on GPUs | use 'nccl', or leave it out");
}

TEST(ChooseBackend, NamesTheNearest) {
  EXPECT_EQ(refusal_of([] { choose_backend(asked("ncll"), "gpu", 1); }),
            "unknown process group backend 'ncll' | did you mean 'nccl'?");
  EXPECT_EQ(refusal_of([] { choose_backend(asked("carrier-pigeon"), "gpu", 1); }),
            "unknown process group backend 'carrier-pigeon' | use auto, nccl, gloo, shm or shm+gloo");
}

}  // namespace
}  // namespace lrun::launcher
