// The lab's fake NVML answers by NVIDIA's own prototypes; the fake of nvml_test.cc only by ours.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cluster/nvml.h"

namespace lrun::launcher {
namespace {

class NvmlLab : public testing::Test {
 protected:
  void SetUp() override {
    if (access(LRUN_LAB, X_OK) != 0) GTEST_SKIP() << "the lab is not here: " << LRUN_LAB;
    setenv("LAB", ("nvml" + std::to_string(getpid())).c_str(), 1);
    if (lab("gpus up 4").status != 0) GTEST_SKIP() << "the lab cannot make a fake NVML here";
    const std::string variable = lab("gpus env").output;  // LD_LIBRARY_PATH=DIR[:…]
    const auto begin = variable.find('=') + 1;
    const std::string directory = variable.substr(begin, variable.find_first_of(":\n", begin) - begin);
    library_ = dlopen((directory + "/libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }

  void TearDown() override {
    if (library_ != nullptr) dlclose(library_);
    if (access(LRUN_LAB, X_OK) == 0) lab("down");
  }

  struct Result {
    int status = 0;
    std::string output;
  };

  static Result lab(const std::string& arguments) {
    FILE* pipe = popen(("'" LRUN_LAB "' " + arguments + " 2>&1").c_str(), "re");
    if (pipe == nullptr) return {-1, ""};
    Result result;
    std::array<char, 512> buffer = {};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) result.output += buffer.data();
    result.status = pclose(pipe);
    return result;
  }

 private:
  void* library_ = nullptr;
};

TEST_F(NvmlLab, CountsFindsTheLostOneAndSeesADriverGo) {
  GpuInventory inventory = ask_nvml();
  EXPECT_EQ(inventory.answer, GpuAnswer::kCounted) << inventory.detail;
  ASSERT_EQ(inventory.gpus.size(), 4U);
  EXPECT_TRUE(inventory.gpus[3].uuid.starts_with("GPU-")) << inventory.gpus[3].uuid;

  ASSERT_EQ(lab("gpus set 1 lost 1").status, 0);
  inventory = ask_nvml();
  ASSERT_EQ(inventory.gpus.size(), 4U) << inventory.detail;
  EXPECT_TRUE(inventory.gpus[1].lost);
  EXPECT_FALSE(inventory.gpus[2].lost);

  ASSERT_EQ(lab("gpus set 2 mig 3").status, 0);
  ASSERT_EQ(lab("gpus set 3 process 4242 30000").status, 0);
  inventory = ask_nvml();
  ASSERT_EQ(inventory.gpus.size(), 6U) << inventory.detail;
  EXPECT_TRUE(inventory.gpus[4].is_instance());
  EXPECT_EQ(inventory.gpus[4].pci_address, "0000:12:00.0");
  ASSERT_EQ(inventory.gpus[5].processes.size(), 1U);
  EXPECT_EQ(inventory.gpus[5].processes[0].pid, 4242);
  EXPECT_EQ(inventory.gpus[5].processes[0].memory_mib, 30000);

  ASSERT_EQ(lab("gpus set init 9").status, 0);
  EXPECT_EQ(ask_nvml().answer, GpuAnswer::kDriverNotLoaded);
}

}  // namespace
}  // namespace lrun::launcher
