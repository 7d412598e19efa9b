// How batches come to a GPU: what arrives, and what the host waits for.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>
#include <lrun/device_transfer.h>

#include <chrono>
#include <string>

#include "runtime/collectives/registry.h"
#include "runtime/cuda/gpus.h"
#include "runtime/cuda/on_gpu.h"

namespace lrun::detail::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kCount = std::int64_t{1} << 24;

/// \param busy  the current stream has work for a second
void require_transfer(bool pinned, bool busy) {
  const std::string name = std::string(pinned ? "pinned" : "ordinary") + (busy ? ", busy" : "");
  SessionOptions options = options_of_one("ddp");
  options.connect = [](const World&) { return make_collectives("single", {}); };
  const Session session(options);  // loads CUDA
  Spin spin;
  at::Tensor here = at::arange(kCount, at::kFloat);
  const at::Tensor expected = here.clone();
  if (pinned) here = here.pin_memory();
  if (busy) spin.start(1s);
  const auto current = mark_current_stream();
  DeviceTransfer transfer(at::Device("cuda:0"));
  const at::Tensor there = transfer(here);
  if (busy) require(!current(), name + ": the host waited for what the current stream had to do");
  require(there.is_cuda(), name + ": the tensor is on " + there.device().str());
  require_equal(there.cpu(), expected, name + ": what arrived");
}

TEST(TransferOnOneGpu, BringsTheBatchWithoutAWaitForTheCurrentStream) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart([] {
              for (const bool pinned : {false, true}) {
                for (const bool busy : {false, true}) require_transfer(pinned, busy);
              }
            }),
            "");
}

}  // namespace
}  // namespace lrun::detail::testing
