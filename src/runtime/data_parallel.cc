#include "runtime/data_parallel.h"

#include <lrun/error.h>
#include <lrun/sync_batch_norm.h>

#include <utility>

namespace lrun {
namespace {

/// Its ranks would meet in the step of part 0, and leave the other parts out without a word.
const std::shared_ptr<torch::nn::Module>& without_sync_batch_norm(const std::shared_ptr<torch::nn::Module>& module) {
  for (const auto& item : module->named_modules()) {
    if (dynamic_cast<const nn::SyncBatchNormImpl*>(item.value().get()) == nullptr) continue;
    throw Unsupported("submodule '" + item.key() +
                      "' is a SyncBatchNorm, which cannot see the parts of a batch in other replicas: use BatchNorm "
                      "under dp and ddp2, or strategy 'ddp'");
  }
  return module;
}

}  // namespace

DataParallel::DataParallel(const StrategyContext& context, std::vector<at::Device> devices,
                           std::unique_ptr<ReplicaGroup> group)
    : replicas_(without_sync_batch_norm(context.module), std::move(devices), context.options.make_replica),
      replicated_(context.module, context.collectives, context.options) {
  replicas_.exchange_through(std::move(group));
}

at::Tensor DataParallel::backward(const at::Tensor& loss) {
  return replicated_.backward(loss, [this] { replicas_.backward(); });
}

}  // namespace lrun
