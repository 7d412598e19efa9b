#pragma once

#include <lrun/collectives.h>
#include <lrun/gradient_sync.h>

#include <optional>
#include <string>
#include <vector>

namespace lrun::detail {

/// One line per tensor: its kind and name, then the properties that must agree: 'float32 [3, 4], trained'.
struct TensorDescription {
  std::string name;  ///< "parameter 'fc1.weight'"
  std::string form;

  bool operator==(const TensorDescription&) const = default;
};
using ModelDescription = std::vector<TensorDescription>;

/// Parameters, then buffers.
ModelDescription describe_model(const std::vector<NamedTensor>& parameters, const std::vector<NamedTensor>& buffers);

/// The first difference to rank 0's, or nothing: pure. `models[r]` is rank r's.
std::optional<std::string> first_difference(const std::vector<ModelDescription>& models);

/// Collective. Costs one all_gather of 16 bytes when all agree.
/// \throws lrun::RankMismatch  the same text on every rank.
void require_same_model(const ModelDescription& mine, Collectives& collectives);

}  // namespace lrun::detail
