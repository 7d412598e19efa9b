// In: a batch's features on each rank. Out: the output of a batch normalisation over all ranks' samples, and running
// statistics. Implements <lrun/sync_batch_norm.h>.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/sync_batch_norm.h>

#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/ddp/sync_batch_norm_function.h"

namespace lrun::nn {
namespace {

/// New running statistics from those of one batch; the variance of a sample is divided by one less.
void follow(at::Tensor& running, const at::Tensor& batch, double momentum) {
  if (running.defined()) running.mul_(1 - momentum).add_(batch.to(running.scalar_type()), momentum);
}

/// `module` converted when it is a BatchNorm of this type.
template <class BatchNorm>
bool insert_converted(torch::OrderedDict<std::string, torch::nn::AnyModule>& modules, const std::string& name,
                      const std::shared_ptr<torch::nn::Module>& module) {
  const auto batch_norm = std::dynamic_pointer_cast<BatchNorm>(module);
  if (!batch_norm) return false;
  modules.insert(name, torch::nn::AnyModule(convert_batch_norm(torch::nn::ModuleHolder<BatchNorm>(batch_norm))));
  return true;
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& as_asked) : NormImplBase(as_asked) {}

SyncBatchNormImpl::~SyncBatchNormImpl() = default;

void SyncBatchNormImpl::connect(Collectives& collectives) {
  collectives_ = &collectives;
  thread_ = std::this_thread::get_id();
}

void SyncBatchNormImpl::disconnect(const Collectives& collectives) {
  if (collectives_ == &collectives) collectives_ = nullptr;
}

void SyncBatchNormImpl::_check_input_dim(const at::Tensor& input) {
  if (input.dim() >= 2 && input.size(1) == options.num_features() && input.is_floating_point()) return;
  throw std::invalid_argument("SyncBatchNorm takes inputs of floating point with " +
                              std::to_string(options.num_features()) + " features in dimension 1");
}

bool SyncBatchNormImpl::syncs() const {
  return is_training() && collectives_ != nullptr && collectives_->world_size() > 1;
}

/// \return how much the running statistics follow this batch.
double SyncBatchNormImpl::count_batch() {
  if (!is_training() || !num_batches_tracked.defined()) return options.momentum().value_or(0.0);
  num_batches_tracked += 1;
  return options.momentum() ? *options.momentum() : 1.0 / num_batches_tracked.item<double>();
}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  _check_input_dim(input);
  const double momentum = count_batch();
  if (!syncs()) {
    const bool of_batch = is_training() || !options.track_running_stats();
    return at::batch_norm(input, weight, bias, running_mean, running_var, of_batch, momentum, options.eps(),
                          at::globalContext().userEnabledCuDNN());
  }
  if (std::this_thread::get_id() != thread_) {
    throw Unsupported("SyncBatchNorm is called in another thread than wrapped it: under dp and ddp2 use BatchNorm");
  }
  const detail::GlobalStatistics statistics = detail::global_statistics(input, *collectives_);
  if (statistics.count < 2) throw std::invalid_argument("batch normalisation needs two values a feature in training");
  {
    const at::NoGradGuard no_grad;
    follow(running_mean, statistics.mean, momentum);
    follow(running_var, statistics.variance * (statistics.count / (statistics.count - 1)), momentum);
  }
  return detail::normalise(input, weight, bias, statistics, options.eps(), *collectives_);
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "lrun::nn::SyncBatchNorm(" << options.num_features() << ", eps=" << options.eps() << ")";
}

torch::nn::Sequential convert_batch_norms(const torch::nn::Sequential& modules) {
  torch::OrderedDict<std::string, torch::nn::AnyModule> result;
  auto next = modules->begin();
  for (const auto& item : modules->named_children()) {
    const torch::nn::AnyModule& module = *next++;
    if (insert_converted<torch::nn::BatchNorm1dImpl>(result, item.key(), item.value())) continue;
    if (insert_converted<torch::nn::BatchNorm2dImpl>(result, item.key(), item.value())) continue;
    if (insert_converted<torch::nn::BatchNorm3dImpl>(result, item.key(), item.value())) continue;
    result.insert(item.key(), module);
  }
  return torch::nn::Sequential(std::move(result));
}

}  // namespace lrun::nn
