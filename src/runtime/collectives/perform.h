#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/collectives/call.h"
#include "runtime/collectives/failure.h"

namespace lrun {

/// A call of one rank with its tensors: the same one twice where the operation is in place.
struct Post {
  Call call;
  at::Tensor input;
  at::Tensor output;
};

/// What is wrong when not all ranks made the same call. Every rank has posted.
std::optional<Failure> find_mismatch(const std::vector<std::optional<Post>>& posts, std::uint64_t sequence);

/// Does a matching call of all ranks, whose memory is all at hand, on the calling thread.
void perform(const std::vector<std::optional<Post>>& posts);

}  // namespace lrun
