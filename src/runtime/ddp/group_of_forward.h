#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <lrun/collectives.h>
#include <lrun/error.h>

#include <string>

namespace lrun::detail {

/// The group of a forward, kept in the graph for its backward, which it has to outlive.
struct GroupOfForward : torch::CustomClassHolder {
  explicit GroupOfForward(Collectives& group) : collectives(group) {}
  Collectives& collectives;
};

/// Called first in a backward that communicates: what comes from other ranks has no graph.
/// \throws lrun::Unsupported  the backward itself would be differentiated.
inline void refuse_double_backward(const std::string& function) {
  if (!at::GradMode::is_enabled()) return;
  throw Unsupported(function + ": double backward across ranks is not supported: call backward() without create_graph");
}

}  // namespace lrun::detail
