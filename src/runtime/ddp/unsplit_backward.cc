#include "runtime/ddp/unsplit_backward.h"

#include <lrun/collectives.h>
#include <lrun/distributed_data_parallel.h>
#include <lrun/error.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/nn/module.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace lrun::detail {
namespace {

using torch::autograd::variable_list;

std::atomic<int> backwards_of_steps = 0;  // that run now

}  // namespace

UnsplitBackward::UnsplitBackward(const torch::nn::Module& module, std::size_t devices) {
  for (const at::Tensor& parameter : distinct(module.parameters())) {
    if (!parameter.requires_grad()) continue;
    auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
    const auto key = accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [devices](const variable_list& outputs, const variable_list&) {
          if (backwards_of_steps > 0) return outputs;
          throw std::logic_error(
              "backward() was called outside of train_step(), which under dp and ddp2 splits each "
              "batch over " +
              std::to_string(devices) +
              " devices; by itself it trains on one: call model.train_step(batch, step), or start "
              "the program with --strategy ddp");
        }));
    hooks_.emplace_back(std::move(accumulator), key);
  }
}

UnsplitBackward::~UnsplitBackward() {
  for (const auto& [accumulator, key] : hooks_) accumulator->del_post_hook(key);
}

UnsplitBackward::OfStep::OfStep() { ++backwards_of_steps; }

UnsplitBackward::OfStep::~OfStep() { --backwards_of_steps; }

Collectives& one_device_a_rank(Collectives& collectives) {
  if (collectives.devices_of_rank() == 1) return collectives;
  throw Unsupported("DistributedDataParallel trains on one device, and this session splits each batch over " +
                    std::to_string(collectives.devices_of_rank()) +
                    " (dp, ddp2): call session.wrap() and train_step() instead, or start the program with --strategy "
                    "ddp");
}

}  // namespace lrun::detail
