// A rank on which the forward of a step threw, and whose program went on with the next.
#include <gtest/gtest.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/error.h>
#include <lrun/model.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cmath>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#include "runtime/support/thread_ranks.h"

namespace lrun::detail {
namespace {

namespace nn = torch::nn;
using test::run_ranks_and_catch;

struct PickyImpl : nn::Module {
  PickyImpl() { layer = register_module("layer", nn::Linear(4, 1)); }
  at::Tensor forward(const at::Tensor& input) {
    if (input.isnan().any().item<bool>()) throw std::domain_error("a batch with NaN");
    return layer(input);
  }
  nn::Linear layer{nullptr};
};
TORCH_MODULE(Picky);

/// Four batches, of which one is bad on rank 1; the program passes over it.
at::Tensor picky_batch(int rank, int step) {
  return at::full({2, 4}, rank == 1 && step == 1 ? std::nan("") : 1.0 + step);
}

void expect_mismatch(const std::vector<std::exception_ptr>& failures) {
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure) << "a rank went on, a step behind the other";
    EXPECT_THROW(std::rethrow_exception(failure), CollectiveMismatch);
  }
}

TEST(TrainStep, WhoseForwardThrewOnOneRankShiftsNoStep) {
  expect_mismatch(run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    WrapOptions options;
    options.guards = GuardOptions{.compare_batches_for = 0};  // would meet in the step
    const Picky net;
    Model<PickyImpl> model(net.ptr(), std::make_unique<ReplicatedModule>(net.ptr(), collectives, options), at::kCPU);
    for (int step = 0; step < 4; ++step) {
      try {
        model.train_step(picky_batch(rank, step),
                         [](PickyImpl& module, const at::Tensor& part) { return module.forward(part).mean(); });
      } catch (const std::domain_error&) {
      }
    }
  }));
}

TEST(DistributedDataParallel, WhoseForwardThrewOnOneRankShiftsNoStep) {
  expect_mismatch(run_ranks_and_catch(2, [](int rank, Collectives& collectives) {
    WrapOptions options;
    options.guards = GuardOptions{.compare_batches_for = 0};
    const Picky net;
    DistributedDataParallel<PickyImpl> ddp(net.ptr(), collectives, options);
    for (int step = 0; step < 4; ++step) {
      try {
        ddp.forward(picky_batch(rank, step)).mean().backward();
      } catch (const std::domain_error&) {
      }
    }
  }));
}

}  // namespace
}  // namespace lrun::detail
