#include "runtime/dp/data_parallel.h"

#include <c10/util/Type.h>
#include <lrun/error.h>
#include <lrun/sync_batch_norm.h>

#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "runtime/dp/replica_threads.h"

namespace lrun::detail {
namespace {

/// Its ranks would meet in the step of part 0 and silently leave out the other parts.
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
      unsplit_(std::in_place, *context.module, replicas_.size()),
      replicated_(context.module, context.collectives, context.options) {
  replicas_.exchange_through(std::move(group));
}

void DataParallel::prepare_forward() {
  unsplit_.reset();
  replicated_.prepare_forward();
}

/// The parts of a batch run their step at the same time, but there is only one set of replicas and threads.
void DataParallel::place_module() {
  if (ReplicaThreads::are_running_this()) {
    throw std::logic_error(
        "train_step() or eval_step() of a wrapped model was called within a step: under dp and ddp2 a step calls "
        "modules "
        "only, as '(*teacher).forward(part)' of one on the part's device");
  }
  replicated_.place_module();
}

at::Tensor DataParallel::backward(const at::Tensor& loss) {
  const UnsplitBackward::OfStep of_step;
  return replicated_.backward(loss, [this] { replicas_.backward(); });
}

std::string describe_constructed_replicas(const torch::nn::Module& module) {
  return "replicas of '" + c10::demangle(typeid(module).name()) +
         "' are made by its default constructor, so that members which were set afterwards are not in them; derive it "
         "from torch::nn::Cloneable, or give WrapOptions::make_replica";
}

}  // namespace lrun::detail
