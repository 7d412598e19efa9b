#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/join.h>
#include <lrun/sync_batch_norm.h>
#include <torch/nn/module.h>

#include "runtime/ddp/flat_broadcast.h"

namespace lrun {
namespace {

void refuse_what_cannot_join(torch::nn::Module& module, Strategy& strategy) {
  if (strategy.gradient_sync() == nullptr) {
    throw Unsupported("the model's strategy does not average gradients through lrun: ranks cannot join");
  }
  module.apply([](torch::nn::Module& part) {
    if (dynamic_cast<nn::SyncBatchNormImpl*>(&part) == nullptr) return;
    throw Unsupported("ranks without a batch cannot take part in SyncBatchNorm: use BatchNorm where ranks join");
  });
}

}  // namespace

struct Join::State {
  State(torch::nn::Module& module, Strategy& strategy_of_model, Collectives& group)
      : strategy(strategy_of_model), collectives(group), buffers(module.buffers()) {}

  Strategy& strategy;
  Collectives& collectives;
  detail::FlatBroadcast buffers;
  int newest_buffers = 0;  // the rank that has them
};

Join::Join(torch::nn::Module& module, Strategy& strategy, Collectives& collectives) {
  if (collectives.world_size() > 1) refuse_what_cannot_join(module, strategy);
  state_ = std::make_unique<State>(module, strategy, collectives);
}

// The loop may have ended while some ranks had no batch left.
Join::~Join() {
  const int world_size = state_->collectives.world_size();
  if (world_size > 1) state_->strategy.gradient_sync()->set_active_ranks(world_size);
}

/// \return whether any rank has a batch.
bool Join::agree(bool has_batch) {
  Collectives& collectives = state_->collectives;
  const int world_size = collectives.world_size();
  if (world_size == 1) return has_batch;
  const at::NoGradGuard no_grad;
  const at::Tensor own = at::full({1}, has_batch ? 1 : 0, at::kByte);
  const at::Tensor all = at::empty({world_size, 1}, at::kByte);
  collectives.all_gather(all, own);
  const int active = static_cast<int>(all.sum().item<std::int64_t>());
  // Rank 0's buffers go to all before each forward; after the last one nobody sends them.
  if (state_->newest_buffers != 0 || active == 0) state_->buffers.run(collectives, state_->newest_buffers);
  state_->newest_buffers = active == 0 ? 0 : static_cast<int>(all.flatten().argmax().item<std::int64_t>());
  state_->strategy.gradient_sync()->set_active_ranks(active == 0 ? world_size : active);
  return active > 0;
}

void Join::begin_step() { agree(true); }

bool Join::others_go_on() { return agree(false); }

void Join::train_step_without_batch() {
  state_->strategy.begin_forward();
  state_->strategy.gradient_sync()->average_after([] {});
}

}  // namespace lrun
