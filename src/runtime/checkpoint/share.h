#pragma once

#include <lrun/session.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lrun::detail {

/// The result of rank 0's search.
struct Shared {
  std::uint64_t number = 0;
  std::string bytes;
};

/// Runs `find` on rank 0 and gives every rank its result. Collective.
/// \throws lrun::CheckpointError  on all ranks: `find` threw; the same text.
std::optional<Shared> share_from_rank_zero(Session& session, const std::function<std::optional<Shared>()>& find);

}  // namespace lrun::detail
