// How batches come to a GPU: what arrives, and what the host waits for.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <lrun/device_transfer.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

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
  if (pinned) transfer.wait();  // for the copies alone; other memory is the caller's again at once
  if (busy) require(!current(), name + ": the host waited for what the current stream had to do");
  here.zero_();
  require(there.is_cuda(), name + ": the tensor is on " + there.device().str());
  require_equal((there * 2).cpu(), expected * 2, name + ": what arrived");
}

void require_everything_else() {
  const Session session(options_of_one("ddp"));  // loads CUDA
  const at::Device gpu("cuda:0");
  DeviceTransfer transfer(gpu);
  const at::Tensor square = at::arange(12, at::kDouble).view({3, 4});
  for (const at::Tensor& view : {square.t(), square.narrow(1, 0, 2), square.select(0, 1).expand({5, 4})}) {
    require_equal(transfer(view).cpu(), view, "a view");
  }
  require(transfer(square.narrow(0, 0, 0)).sizes() == at::IntArrayRef({0, 4}), "an empty tensor has another shape");
  require(!transfer(at::Tensor()).defined(), "an undefined tensor became defined");
  const at::Tensor there = square.to(gpu);
  require(transfer(there).is_same(there), "a tensor of the GPU was copied");
  const std::map<std::string, std::vector<at::Tensor>> nested = {{"a", {square, square + 1}}, {"b", {square + 2}}};
  const auto moved = transfer(nested);
  require_equal(moved.at("a")[1].cpu(), square + 1, "in a list");
  require_equal(moved.at("b")[0].cpu(), square + 2, "in a map");
  const at::Tensor input = at::ones({3}, at::kDouble).requires_grad_();
  (transfer(input) * 3).sum().backward();
  require_equal(input.grad(), at::full({3}, 3, at::kDouble), "the gradient of a batch");
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

TEST(TransferOnOneGpu, BringsViewsNestedBatchesAndGradients) {
  if (gpus() < 1) GTEST_SKIP() << "no /dev/nvidia0";
  EXPECT_EQ(run_apart(require_everything_else), "");
}

}  // namespace
}  // namespace lrun::detail::testing
