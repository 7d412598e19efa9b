// In: a module of the program. Out: the same module with rank 0's values on all ranks, whose gradients are averaged.
// Implements ReplicatedModule of <lrun/model.h>.
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/model.h>
#include <lrun/sync_batch_norm.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "runtime/ddp/distinct_tensors.h"
#include "runtime/ddp/flat_broadcast.h"
#include "runtime/ddp/model_agreement.h"
#include "runtime/ddp/module_placement.h"

namespace lrun {
namespace {

template <class Dictionary>
std::vector<NamedTensor> distinct_ones(const Dictionary& tensors) {
  std::vector<NamedTensor> result;
  for (const auto& item : tensors) result.push_back({item.key(), item.value()});
  return detail::distinct(std::move(result));
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> result;
  for (const auto& item : named) result.push_back(item.tensor);
  return result;
}

/// Parameters and buffers.
std::vector<at::Tensor> all_tensors_of(const torch::nn::Module& module) {
  auto tensors = tensors_of(distinct_ones(module.named_parameters()));
  const auto buffers = tensors_of(distinct_ones(module.named_buffers()));
  tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  return tensors;
}

/// The module's parameters, after all ranks were found to have the same model and got rank 0's values.
std::vector<NamedTensor> equalised_parameters(const torch::nn::Module& module, Collectives& collectives) {
  auto parameters = distinct_ones(module.named_parameters());
  const auto buffers = distinct_ones(module.named_buffers());
  detail::require_same_model(detail::describe_model(parameters, buffers), collectives);
  detail::FlatBroadcast(all_tensors_of(module)).run(collectives);
  return parameters;
}

/// The name of the first of `tensors` that is not among `known`; empty if all are known.
std::string first_unknown(const std::vector<NamedTensor>& tensors, const std::vector<NamedTensor>& known) {
  std::unordered_set<const at::TensorImpl*> identities;
  for (const auto& [name, tensor] : known) identities.insert(tensor.unsafeGetTensorImpl());
  const auto found = std::ranges::find_if(
      tensors, [&](const NamedTensor& item) { return !identities.contains(item.tensor.unsafeGetTensorImpl()); });
  return found == tensors.end() ? std::string() : found->name;
}

void require_loss(const at::Tensor& loss) {
  if (loss.defined() && loss.numel() == 1) return;
  throw std::invalid_argument("the loss of a training step is a tensor with one element");
}

}  // namespace

class ReplicatedModule::BufferBroadcast {
 public:
  BufferBroadcast(const torch::nn::Module& module, Collectives& collectives)
      : plan_(tensors_of(distinct_ones(module.named_buffers()))), collectives_(collectives) {}

  void run() { plan_.run(collectives_); }
  [[nodiscard]] const Collectives& collectives() const { return collectives_; }

 private:
  detail::FlatBroadcast plan_;
  Collectives& collectives_;
};

ReplicatedModule::ReplicatedModule(std::shared_ptr<torch::nn::Module> module, Collectives& collectives,
                                   const WrapOptions& options)
    : module_(std::move(module)),
      buffers_(std::make_unique<BufferBroadcast>(*module_, collectives)),
      placement_(std::make_unique<detail::ModulePlacement>(all_tensors_of(*module_))),
      parameters_(equalised_parameters(*module_, collectives)),
      gradient_sync_(parameters_, collectives, options.gradients.value_or(GradientSyncOptions())),
      broadcast_buffers_(options.broadcast_buffers) {
  gradient_sync_.guard(parameters_, options.guards.value_or(GuardOptions()));
  module_->apply([&](torch::nn::Module& part) {
    if (auto* batch_norm = dynamic_cast<nn::SyncBatchNormImpl*>(&part)) batch_norm->connect(collectives);
  });
}

ReplicatedModule::~ReplicatedModule() {
  if (!module_) return;  // moved from
  // The program may keep the module longer than the session.
  module_->apply([&](torch::nn::Module& part) {
    if (auto* batch_norm = dynamic_cast<nn::SyncBatchNormImpl*>(&part)) batch_norm->disconnect(buffers_->collectives());
  });
}

ReplicatedModule::ReplicatedModule(ReplicatedModule&&) noexcept = default;
ReplicatedModule& ReplicatedModule::operator=(ReplicatedModule&&) noexcept = default;

void ReplicatedModule::prepare_forward() {
  refuse_changed_parameters();
  gradient_sync_.prepare();
  if (broadcast_buffers_ && gradient_sync_.syncs()) {
    gradient_sync_.within_step([this] { buffers_->run(); });
  }
}

void ReplicatedModule::place_module() { placement_->restore(); }

/// A parameter that was registered later would be trained by the optimizer but not averaged.
void ReplicatedModule::refuse_changed_parameters() const {
  if (std::ranges::equal(
          detail::distinct(module_->parameters()), parameters_,
          [](const at::Tensor& now, const NamedTensor& wrapped) { return now.is_same(wrapped.tensor); })) {
    return;
  }
  const auto now = distinct_ones(module_->named_parameters());
  const std::string added = first_unknown(now, parameters_);
  const std::string removed = first_unknown(parameters_, now);
  if (added.empty() && removed.empty()) return;  // in another order
  throw std::logic_error("parameter '" + (added.empty() ? removed : added) + "' was " +
                         (added.empty() ? "removed" : "registered or replaced") +
                         " after the module was wrapped: destroy the wrapped model and wrap again");
}

at::Tensor ReplicatedModule::backward(const at::Tensor& loss) {
  require_loss(loss);
  gradient_sync_.watch(loss);
  loss.backward();
  return loss.detach();
}

at::Tensor ReplicatedModule::backward(const at::Tensor& loss, const std::function<void()>& rest) {
  require_loss(loss);
  gradient_sync_.average_after([&] {
    loss.backward();
    rest();
  });
  return loss.detach();
}

bool ReplicatedModule::compares_batches() const { return gradient_sync_.compares_batches(); }

void ReplicatedModule::look_at_batch(const std::vector<at::Tensor>& tensors) { gradient_sync_.look_at_batch(tensors); }

void ReplicatedModule::broadcast_buffers() { buffers_->run(); }

std::vector<at::Tensor> ReplicatedModule::parameters() const { return detail::distinct(module_->parameters()); }

}  // namespace lrun
