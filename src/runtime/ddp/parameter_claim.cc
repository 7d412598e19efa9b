#include "runtime/ddp/parameter_claim.h"

#include <mutex>
#include <stdexcept>
#include <unordered_set>

namespace lrun::detail {
namespace {

struct Claimed {
  std::mutex mutex;
  std::unordered_set<const at::TensorImpl*> tensors;
};

Claimed& all_claimed() {
  static Claimed& instance = *new Claimed;  // never destroyed: a model may be global and end later
  return instance;
}

}  // namespace

ParameterClaim::~ParameterClaim() { release(); }

void ParameterClaim::take(const std::vector<NamedTensor>& parameters) {
  Claimed& all = all_claimed();
  const std::lock_guard lock(all.mutex);
  for (const auto& [name, tensor] : parameters) {
    if (!all.tensors.contains(tensor.unsafeGetTensorImpl())) continue;
    throw std::invalid_argument("parameter '" + name +
                                "' is trained by another wrapped model already: destroy that one before, or wrap one "
                                "module that holds the parameters of both");
  }
  for (const auto& parameter : parameters) {
    tensors_.push_back(parameter.tensor);
    all.tensors.insert(parameter.tensor.unsafeGetTensorImpl());
  }
}

void ParameterClaim::release() noexcept {
  Claimed& all = all_claimed();
  const std::lock_guard lock(all.mutex);
  for (const at::Tensor& tensor : tensors_) all.tensors.erase(tensor.unsafeGetTensorImpl());
  tensors_.clear();
}

}  // namespace lrun::detail
