#include <ATen/ATen.h>
#include <c10/util/Type.h>
#include <lrun/batch.h>
#include <lrun/error.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

namespace lrun {
namespace {

bool has_samples(const at::Tensor& tensor) { return tensor.defined() && tensor.dim() > 0; }

}  // namespace

std::vector<std::int64_t> split_evenly(std::int64_t samples, std::size_t devices) {
  if (devices == 0) throw std::invalid_argument("a batch cannot be split over no device");
  const auto parts = std::clamp<std::int64_t>(samples, 1, static_cast<std::int64_t>(devices));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), samples / parts);
  for (std::int64_t index = 0; index < samples % parts; ++index) ++sizes[static_cast<std::size_t>(index)];
  return sizes;
}

namespace detail {

void refuse_opaque(const char* type) {
  throw Unsupported("a batch of type '" + c10::demangle(type) +
                    "' cannot be split over several devices: give it a member for_each_tensor (lrun/batch.h)");
}

std::int64_t count_samples(const std::vector<at::Tensor*>& tensors) {
  std::optional<std::int64_t> samples;
  for (const at::Tensor* tensor : tensors) {
    if (!has_samples(*tensor)) continue;
    if (samples && *samples != tensor->size(0)) {
      throw std::invalid_argument("a batch has tensors with " + std::to_string(*samples) + " and with " +
                                  std::to_string(tensor->size(0)) +
                                  " samples along dimension 0, and cannot be split: what is not per sample does not "
                                  "belong into the batch");
    }
    samples = tensor->size(0);
  }
  return samples.value_or(0);
}

void narrow_all(const std::vector<at::Tensor*>& tensors, std::int64_t begin, std::int64_t size) {
  for (at::Tensor* tensor : tensors) {
    if (has_samples(*tensor)) *tensor = tensor->narrow(0, begin, size);
  }
}

}  // namespace detail
}  // namespace lrun
