#include "runtime/stand_in/expectations.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace lrun::test::stand_in {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::uint64_t kSeeds = 6;
constexpr std::uint64_t kPolls = 6;

const std::set<std::string> kPolling = {"cudaEventQuery", "ncclCommGetAsyncError"};
const std::set<std::string> kGivingBack = {"cudaEventDestroy", "ncclCommDestroy", "ncclCommAbort"};
const std::set<std::string> kAtTheEnd = {"ncclCommFinalize", "ncclGroupStart", "ncclGroupEnd"};

}  // namespace

std::vector<std::uint64_t> seeds() {
  if (const char* chosen = std::getenv("LRUN_SEED")) return {std::stoull(chosen)};
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) all.push_back(seed);
  return all;
}

void expect_order() {
  EXPECT_THAT(take_misuse(), IsEmpty());
  EXPECT_EQ(live().events, 0);
  EXPECT_EQ(live().communicators, 0);
  EXPECT_EQ(live().open_groups, 0);
}

std::vector<Fault> faults_of_all_calls(int device) {
  std::vector<Fault> faults;
  for (const auto& [site, count] : calls()) {
    if (site.library != "liblrun_cuda.so" || (device >= 0 && site.device != device)) continue;
    const int error = site.function.starts_with("nccl") ? static_cast<int>(ncclUnhandledCudaError)
                                                        : static_cast<int>(cudaErrorIllegalAddress);
    const std::uint64_t last = kPolling.contains(site.function) ? std::min(count, kPolls) : count;
    for (std::uint64_t call = 1; call <= last; ++call) faults.push_back({site, call, error});
  }
  return faults;
}

std::string name_of(const Fault& fault) {
  return fault.site.function + ", call " + std::to_string(fault.call) + " on device " +
         std::to_string(fault.site.device);
}

void expect_name_of(const Fault& fault, const std::string& error) {
  const std::string& function = fault.site.function;
  const bool gives_back = kGivingBack.contains(function);
  const bool is_silent =
      gives_back || kPolling.contains(function) || kAtTheEnd.contains(function) || function == "cudaSetDevice";
  if (error.empty()) {
    EXPECT_TRUE(!was_injected() || is_silent) << "no error";
  } else if (function == "cudaGetDeviceCount") {
    EXPECT_THAT(error, StartsWith("Unsupported: backend 'nccl' needs a GPU that CUDA can use, and there is none ("));
  } else {
    EXPECT_THAT(error, AllOf(StartsWith("Error: backend 'nccl': "), HasSubstr(function)));
  }
  EXPECT_THAT(take_misuse(), IsEmpty());
  EXPECT_LE(live().events + live().communicators, gives_back ? 1 : 0) << "not given back";
  EXPECT_EQ(live().open_groups, 0);
}

}  // namespace lrun::test::stand_in
