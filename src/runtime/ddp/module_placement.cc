#include "runtime/ddp/module_placement.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace lrun::detail {

ModulePlacement::ModulePlacement(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) tensors_.push_back({tensor, tensor.device()});
}

void ModulePlacement::restore() const {
  const at::NoGradGuard no_grad;
  for (const auto& [tensor, device] : tensors_) {
    if (tensor.device() != device) tensor.set_data(tensor.variable_data().to(device));
  }
}

}  // namespace lrun::detail
