// In: the names, shapes and dtypes of a model's tensors. Out: an error on all ranks that names the first difference.
// Called by wrap() and by OptimizerShards.
#include "runtime/ddp/model_agreement.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/error.h>
#include <lrun/exchange.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace lrun::detail {
namespace {

std::string form_of(const at::Tensor& tensor) {
  std::string form(c10::toString(tensor.scalar_type()));
  form += " [";
  for (std::int64_t dimension = 0; dimension < tensor.dim(); ++dimension) {
    form += (dimension == 0 ? "" : ", ") + std::to_string(tensor.size(dimension));
  }
  form += "]";
  // Buckets are laid out like the parameters: ranks whose strides differ would average different elements.
  if (tensor.requires_grad() && !tensor.is_contiguous()) {
    form += " strides";
    for (const std::int64_t stride : tensor.strides()) form += " " + std::to_string(stride);
  }
  return form;
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  return hash;
}

// Names of modules hold no control characters, so these separate.
std::string encode(const ModelDescription& model) {
  std::string text;
  for (const auto& [name, form] : model) text += name + '\x1f' + form + '\x1e';
  return text;
}

ModelDescription decode(std::string_view text) {
  ModelDescription model;
  while (!text.empty()) {
    const auto middle = text.find('\x1f');
    const auto end = text.find('\x1e');
    model.push_back({std::string(text.substr(0, middle)), std::string(text.substr(middle + 1, end - middle - 1))});
    text.remove_prefix(end + 1);
  }
  return model;
}

std::string say(const ModelDescription& model, std::size_t index) {
  return index < model.size() ? model[index].name + " is " + model[index].form : std::string("there is nothing more");
}

}  // namespace

ModelDescription describe_model(const std::vector<NamedTensor>& parameters, const std::vector<NamedTensor>& buffers) {
  ModelDescription model;
  for (const auto& [name, tensor] : parameters) {
    model.push_back(
        {"parameter '" + name + "'", form_of(tensor) + (tensor.requires_grad() ? ", trained" : ", frozen")});
  }
  for (const auto& [name, tensor] : buffers) model.push_back({"buffer '" + name + "'", form_of(tensor)});
  return model;
}

std::optional<std::string> first_difference(const std::vector<ModelDescription>& models) {
  std::size_t longest = 0;
  for (const auto& model : models) longest = std::max(longest, model.size());
  for (std::size_t index = 0; index < longest; ++index) {
    for (std::size_t rank = 1; rank < models.size(); ++rank) {
      const auto expected = say(models.front(), index);
      const auto found = say(models[rank], index);
      if (expected != found) {
        return "the model differs between ranks: " + expected + " on rank 0, and " + found + " on rank " +
               std::to_string(rank);
      }
    }
  }
  return std::nullopt;
}

void require_same_model(const ModelDescription& mine, Collectives& collectives) {
  if (collectives.world_size() == 1) return;
  at::NoGradGuard no_grad;
  const auto text = encode(mine);
  auto summary = at::empty({2}, at::kLong);
  summary[0] = static_cast<std::int64_t>(fnv1a(text));
  summary[1] = static_cast<std::int64_t>(text.size());
  auto all = at::empty({collectives.world_size(), 2}, at::kLong);
  collectives.all_gather(all, summary);
  if (all.eq(all[0]).all().item<bool>()) return;
  std::vector<ModelDescription> models;
  for (const auto& other : lrun::all_gather(collectives, text)) models.push_back(decode(other));
  if (const auto difference = first_difference(models)) throw RankMismatch(*difference);
}

}  // namespace lrun::detail
