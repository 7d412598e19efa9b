#pragma once

#include <lrun/gradient_sync.h>

#include <vector>

namespace lrun::detail {

/// The right to put gradients of these parameters into buckets, which one wrapped model of the process has at a time.
/// With two models, each would take the gradient for a view of its own bucket, and average the other's average.
///
/// Threads  any: ranks that are threads of one process claim their own parameters.
class ParameterClaim {
 public:
  ParameterClaim() = default;
  ParameterClaim(const ParameterClaim&) = delete;
  ParameterClaim& operator=(const ParameterClaim&) = delete;
  ~ParameterClaim();

  /// Once, each parameter once.
  /// \throws std::invalid_argument  a parameter is claimed by another; names it. Nothing is claimed then.
  void take(const std::vector<NamedTensor>& parameters);
  void release() noexcept;

 private:
  std::vector<at::Tensor> tensors_;  // kept alive, so that no other tensor takes the address that stands for one
};

}  // namespace lrun::detail
