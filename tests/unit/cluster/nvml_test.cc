#include "cluster/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace lrun {
namespace {

constexpr unsigned kNoneLost = ~0U;

/// Holds the fake driver library loaded.
class Nvml : public testing::Test {
 protected:
  Nvml() : library_(dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) {}
  ~Nvml() override {
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void SetUp() override { ASSERT_NE(library_, nullptr) << dlerror(); }

  void answers(int init, int counting, unsigned count, unsigned lost) {
    reinterpret_cast<void (*)(int, int, unsigned, unsigned)>(dlsym(library_, "fake_nvml_set"))(init, counting, count,
                                                                                               lost);
  }
  int open_users() { return reinterpret_cast<int (*)()>(dlsym(library_, "fake_nvml_users"))(); }

 private:
  void* library_;
};

TEST_F(Nvml, GivesIndexAndUuidOfEveryGpu) {
  answers(0, 0, 2, kNoneLost);
  const GpuInventory expected{GpuAnswer::kCounted, {{0, "GPU-ax", "0", false}, {1, "GPU-bx", "1", false}}, ""};
  EXPECT_EQ(ask_nvml(), expected);
}

TEST_F(Nvml, TellsALostGpuFromTheOthers) {
  answers(0, 0, 3, 1);
  const GpuInventory inventory = ask_nvml();
  ASSERT_EQ(inventory.gpus.size(), 3U);
  EXPECT_FALSE(inventory.gpus[0].lost);
  EXPECT_EQ(inventory.gpus[1], (Gpu{1, "", "1", true}));
  EXPECT_FALSE(inventory.gpus[2].lost);
  EXPECT_EQ(inventory.detail, "GPU 1 is lost");
}

TEST_F(Nvml, TellsADriverThatIsNotLoadedFromOneWithoutGpus) {
  answers(9, 0, 0, kNoneLost);
  EXPECT_EQ(ask_nvml().answer, GpuAnswer::kDriverNotLoaded);
  answers(0, 0, 0, kNoneLost);
  EXPECT_EQ(ask_nvml(), (GpuInventory{GpuAnswer::kCounted, {}, "the NVIDIA driver has no GPU"}));
}

TEST_F(Nvml, KeepsTheDriversWordsWhenItFails) {
  answers(999, 0, 0, kNoneLost);
  EXPECT_EQ(ask_nvml(), (GpuInventory{GpuAnswer::kFailed, {}, "the NVIDIA driver says 'Unknown Error'"}));
  answers(0, 999, 4, kNoneLost);
  EXPECT_EQ(ask_nvml().answer, GpuAnswer::kFailed);
}

TEST_F(Nvml, LeavesTheDriverAfterEveryQuestion) {
  for (const int counting : {0, 999}) {
    answers(0, counting, 1, kNoneLost);
    ask_nvml();
    EXPECT_EQ(open_users(), 0) << "after counting gave " << counting;
  }
}

}  // namespace
}  // namespace lrun
