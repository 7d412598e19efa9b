#pragma once

#include <utility>

namespace lrun {

/// An optimizer of torch over the parameters of a wrapped model; made by Session::optimizer(). A strategy that splits
/// the optimizer's state over the ranks does so behind the same calls.
///
/// Threads: the training thread.
template <class TorchOptimizer>
class Optimizer {
 public:
  template <class Parameters, class Options>
  Optimizer(Parameters&& parameters, const Options& options)
      : optimizer_(std::forward<Parameters>(parameters), options) {}

  /// Sets the gradients to undefined (C++'s default), or to zero in place.
  void zero_grad(bool set_to_none = true) { optimizer_.zero_grad(set_to_none); }

  /// One update from the averaged gradients: the same on every rank.
  void step() { optimizer_.step(); }

  /// torch's own optimizer: parameter groups, saving, schedulers.
  [[nodiscard]] TorchOptimizer& operator*() { return optimizer_; }
  [[nodiscard]] TorchOptimizer* operator->() { return &optimizer_; }

 private:
  TorchOptimizer optimizer_;
};

}  // namespace lrun
