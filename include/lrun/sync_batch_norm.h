#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstdint>
#include <thread>

namespace lrun {

class Collectives;

namespace nn {

/// Batch normalisation over the samples of all ranks: computes what BatchNorm1d, 2d and 3d compute for the whole batch.
/// It has their parameters, buffers and options, so that their checkpoints can be loaded.
///
/// Session::wrap() connects it to the ranks under lrun's strategies; a strategy of your own calls connect(). Before
/// that, in evaluation and in a world of one it is an ordinary batch normalisation. Each training forward costs one
/// all_gather of 2·features + 1 numbers, each backward one all_reduce of 2·features. Ranks may have different numbers
/// of samples, or none.
///
/// Order   all ranks run the same modules in the same order. If the ranks' graphs differ while backward averages
///         gradients (a parameter is unused on some ranks only), ranks may call different operations, which is
///         CollectiveMismatch.
/// Limits  lrun::Unsupported: double backward (create_graph=true) over several ranks, and replicas in threads (dp,
/// ddp2),
///         which cannot share it.
/// Threads the training thread, which wrapped it.
class LRUN_EXPORT SyncBatchNormImpl
    : public torch::nn::NormImplBase<0, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  /// \param features  size of dimension 1 of the inputs.
  explicit SyncBatchNormImpl(std::int64_t features) : SyncBatchNormImpl(torch::nn::BatchNormOptions(features)) {}
  /// \param as_asked  options of torch's batch normalisations.
  explicit SyncBatchNormImpl(const torch::nn::BatchNormOptions& as_asked);
  ~SyncBatchNormImpl() override;

  /// \param input  (samples, features, …) in floating point.
  /// \throws std::invalid_argument  another shape, or, in training, fewer than two values per feature over all ranks.
  at::Tensor forward(const at::Tensor& input);

  /// Normalises over these ranks from now on. wrap() calls it. `collectives` must outlive the forward and backward
  /// calls.
  void connect(Collectives& collectives);
  /// Makes it an ordinary batch normalisation again, unless it was connected to others since. The destructor of a
  /// wrapped model calls it.
  void disconnect(const Collectives& collectives);

  /// Prints its name and options.
  void pretty_print(std::ostream& stream) const override;

 protected:
  /// \throws std::invalid_argument  another shape than forward() takes.
  void _check_input_dim(const at::Tensor& input) override;

 private:
  [[nodiscard]] bool syncs() const;
  double count_batch();

  Collectives* collectives_ = nullptr;  // not owned: the session's
  std::thread::id thread_;              // that connected it
};

/// The module holder, as torch's modules have one.
class SyncBatchNorm : public torch::nn::ModuleHolder<SyncBatchNormImpl> {
 public:
  using torch::nn::ModuleHolder<SyncBatchNormImpl>::ModuleHolder;
  using Impl = SyncBatchNormImpl;  ///< What it holds; torch's containers ask for this name.
};

/// Makes a SyncBatchNorm with the options of a BatchNorm1d, 2d or 3d and copies of its parameters and statistics.
/// Convert before wrap() and before the optimizer is made. C++ modules declare their members by type, so a member is
/// converted where it is declared; for Sequential see below.
template <class BatchNorm>
[[nodiscard]] SyncBatchNorm convert_batch_norm(const torch::nn::ModuleHolder<BatchNorm>& module) {
  SyncBatchNorm result(module->options);
  result->train(module->is_training());
  const torch::NoGradGuard no_grad;
  const auto copy = [](at::Tensor& to, const at::Tensor& from) {
    if (from.defined()) to.set_data(from.detach().clone());
  };
  copy(result->weight, module->weight);
  copy(result->bias, module->bias);
  copy(result->running_mean, module->running_mean);
  copy(result->running_var, module->running_var);
  copy(result->num_batches_tracked, module->num_batches_tracked);
  return result;
}

/// Makes a new Sequential of the same modules under the same names, with each BatchNorm1d, 2d and 3d converted. One
/// inside a module of your own is not found: declare it as SyncBatchNorm there.
[[nodiscard]] LRUN_EXPORT torch::nn::Sequential convert_batch_norms(const torch::nn::Sequential& modules);

}  // namespace nn
}  // namespace lrun
