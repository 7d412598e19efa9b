#pragma once

#include <ATen/core/ivalue.h>
#include <lrun/collectives.h>

namespace lrun::detail {

/// The group of a forward, kept in the graph for its backward, which it has to outlive.
struct GroupOfForward : torch::CustomClassHolder {
  explicit GroupOfForward(Collectives& group) : collectives(group) {}
  Collectives& collectives;
};

}  // namespace lrun::detail
