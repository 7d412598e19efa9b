#include "runtime/ddp/distinct_tensors.h"

#include <lrun/optimizer.h>
#include <torch/optim/optimizer.h>

#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

namespace lrun::detail {

std::vector<NamedTensor> distinct(std::vector<NamedTensor> tensors) {
  std::unordered_set<const at::TensorImpl*> seen;
  std::erase_if(tensors, [&](const NamedTensor& item) {
    return !item.tensor.defined() || !seen.insert(item.tensor.unsafeGetTensorImpl()).second;
  });
  return tensors;
}

std::vector<at::Tensor> distinct(std::vector<at::Tensor> tensors) {
  std::unordered_set<const at::TensorImpl*> seen;
  std::erase_if(tensors, [&](const at::Tensor& tensor) { return !seen.insert(tensor.unsafeGetTensorImpl()).second; });
  return tensors;
}

std::vector<torch::optim::OptimizerParamGroup> distinct(std::vector<torch::optim::OptimizerParamGroup> groups) {
  std::unordered_map<const at::TensorImpl*, std::size_t> group_of;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    groups[group].params() = distinct(std::move(groups[group].params()));
    for (const at::Tensor& parameter : groups[group].params()) {
      const auto [place, is_new] = group_of.emplace(parameter.unsafeGetTensorImpl(), group);
      if (is_new) continue;
      std::ostringstream text;
      text << "a parameter of shape " << parameter.sizes() << " is in groups " << place->second << " and " << group
           << " of the optimizer, and both would update it: leave it out of one";
      throw std::invalid_argument(text.str());
    }
  }
  return groups;
}

}  // namespace lrun::detail
