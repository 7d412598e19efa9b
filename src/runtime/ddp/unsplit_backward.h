#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace lrun::detail {

/// While it lives, it refuses a backward() that reaches the module's parameters from outside of all training steps: the
/// whole batch went through the module on its own device, and the other devices are idle.
///
/// Threads  made and destroyed on the training thread.
class UnsplitBackward {
 public:
  /// \param devices  over which a step would split the batch.
  UnsplitBackward(const torch::nn::Module& module, std::size_t devices);
  UnsplitBackward(const UnsplitBackward&) = delete;
  UnsplitBackward& operator=(const UnsplitBackward&) = delete;
  ~UnsplitBackward();

  /// While one lives, in whatever thread, a backward() is that of a step, of this model or of one that it runs through.
  class OfStep {
   public:
    OfStep();
    OfStep(const OfStep&) = delete;
    OfStep& operator=(const OfStep&) = delete;
    ~OfStep();
  };

 private:
  // LibTorch 2.13 changes the pointer's type: never spell it.
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

  std::vector<std::pair<Accumulator, std::uintptr_t>> hooks_;
};

}  // namespace lrun::detail
