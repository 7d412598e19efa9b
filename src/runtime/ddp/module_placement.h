#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

namespace lrun::detail {

/// The devices of a module's tensors, to move them back there: Module::load() leaves each on the archive's device, and
/// a program may have moved the module to save or to inspect it.
class ModulePlacement {
 public:
  explicit ModulePlacement(const std::vector<at::Tensor>& tensors);

  /// Moves the tensors that are elsewhere now. They stay the same objects.
  void restore() const;

 private:
  struct Placed {
    at::Tensor tensor;
    at::Device device;
  };

  std::vector<Placed> tensors_;
};

}  // namespace lrun::detail
