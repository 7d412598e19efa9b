// In: parameters of a model. Out: the items that buckets are planned from, views of buckets, and refusals of parameters
// that changed. Called by GradientSync and its buckets.
#include "runtime/ddp/gradient_layout.h"

#include <ATen/ATen.h>
#include <lrun/error.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/ddp/distinct_tensors.h"

namespace lrun::detail {
namespace {

std::string text_of(at::IntArrayRef sizes) {
  std::string text;
  for (const auto size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

void check(const NamedTensor& parameter) {
  if (parameter.tensor.is_inference()) {
    throw std::invalid_argument("parameter '" + parameter.name + "' was made in inference mode and cannot be trained");
  }
  if (!parameter.tensor.is_leaf()) {
    throw std::invalid_argument("parameter '" + parameter.name + "' is the result of an operation, not a leaf");
  }
  const auto dtype = parameter.tensor.scalar_type();
  if (dtype != at::kFloat && dtype != at::kDouble && dtype != at::kHalf && dtype != at::kBFloat16) {
    throw Unsupported("gradients of parameter '" + parameter.name + "' cannot be averaged: its dtype is " +
                      c10::toString(dtype));
  }
}

}  // namespace

std::vector<NamedTensor> trained_parameters(std::vector<NamedTensor> parameters) {
  auto result = distinct(std::move(parameters));
  std::erase_if(result, [](const NamedTensor& parameter) { return !parameter.tensor.requires_grad(); });
  for (const auto& parameter : result) check(parameter);
  return result;
}

std::vector<BucketItem> bucket_items(const std::vector<NamedTensor>& parameters) {
  std::vector<std::pair<at::ScalarType, at::Device>> kinds;
  std::vector<BucketItem> items;
  for (const auto& [name, tensor] : parameters) {
    const std::pair kind(tensor.scalar_type(), tensor.device());
    auto found = std::find(kinds.begin(), kinds.end(), kind);
    if (found == kinds.end()) found = kinds.insert(kinds.end(), kind);
    items.push_back({tensor.numel(), static_cast<std::int64_t>(tensor.element_size()),
                     static_cast<std::size_t>(found - kinds.begin())});
  }
  return items;
}

at::Tensor gradient_view(const at::Tensor& flat, std::int64_t offset, const at::Tensor& parameter) {
  const auto part = flat.narrow(0, offset, parameter.numel());
  const bool same_layout = parameter.is_non_overlapping_and_dense();
  const auto view =
      same_layout ? part.as_strided(parameter.sizes(), parameter.strides()) : part.view(parameter.sizes());
  return view.variable_data();
}

void refuse_other_device(const std::string& name, const at::Tensor& parameter, const at::Tensor& bucket) {
  if (parameter.device() == bucket.device()) return;
  throw std::invalid_argument("parameter '" + name + "' is on " + parameter.device().str() +
                              ", and the group averages gradients on " + bucket.device().str() +
                              ": move the module there, or let Session::wrap() do it");
}

void refuse_other_form(const NamedTensor& parameter, const at::Tensor& gradient) {
  const at::Tensor& tensor = parameter.tensor;
  if (tensor.sizes() == gradient.sizes() && tensor.scalar_type() == gradient.scalar_type() &&
      tensor.device() == gradient.device()) {
    return;
  }
  const auto changed = [&](const std::string& before, const std::string& now, const std::string& hint) {
    throw std::logic_error("parameter '" + parameter.name + "' was " + before + " when the module was wrapped and is " +
                           now + " now, by to() or by load() of an archive: " + hint);
  };
  if (tensor.sizes() != gradient.sizes()) {
    changed(text_of(gradient.sizes()), text_of(tensor.sizes()), "load one of this model");
  }
  if (tensor.scalar_type() != gradient.scalar_type()) {
    const std::string before = c10::toString(gradient.scalar_type());
    changed(before, c10::toString(tensor.scalar_type()), "convert it back with module->to(torch::k" + before + ")");
  }
  changed("on " + gradient.device().str(), "on " + tensor.device().str(),
          "move it back with module->to(torch::Device(\"" + gradient.device().str() + "\"))");
}

std::vector<double> numbers_of(const at::Tensor& flags) {
  const at::Tensor numbers = flags.to(at::kCPU, at::kDouble).contiguous();
  const auto* first = numbers.const_data_ptr<double>();
  return {first, first + numbers.numel()};
}

at::ScalarType wire_type(WireFormat format, at::ScalarType dtype) {
  if (format == WireFormat::kSame || (dtype != at::kFloat && dtype != at::kDouble)) return dtype;
  return format == WireFormat::kFloat16 ? at::kHalf : at::kBFloat16;
}

}  // namespace lrun::detail
