#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

namespace lrun::detail {

/// The devices on which tensors of a module are, to bring them back there: Module::load() leaves each where the archive
/// has it, and a program may have moved the module to save or to look at it.
class ModulePlacement {
 public:
  explicit ModulePlacement(const std::vector<at::Tensor>& tensors);

  /// Moves what is elsewhere now. The tensors stay the same objects.
  void restore() const;

 private:
  struct Placed {
    at::Tensor tensor;
    at::Device device;
  };

  std::vector<Placed> tensors_;
};

}  // namespace lrun::detail
