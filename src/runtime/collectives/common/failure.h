#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace lrun::detail {

/// Why a group has failed: every later call throws this. A value, because each thread and each process throws its own
/// exception object.
struct Failure {
  enum class Kind : std::uint32_t { kTimeout, kPeerLost, kMismatch, kOther };

  Kind kind = Kind::kOther;
  std::string text;

  bool operator==(const Failure&) const = default;

  /// \throws CollectiveTimeout, PeerLost, CollectiveMismatch or Error, always.
  [[noreturn]] void raise() const;
};

/// The failure that a group threw; empty for any other exception.
std::optional<Failure> failure_of(const std::exception& error);

/// A rank of a group that is a part of another one, as messages name it: by its number there. Empty: the same numbers.
[[nodiscard]] inline int name_of_rank(int rank, const std::vector<int>& ranks_above) {
  return ranks_above.empty() ? rank : ranks_above[static_cast<std::size_t>(rank)];
}

[[nodiscard]] inline std::vector<int> names_of_ranks(std::vector<int> ranks, const std::vector<int>& ranks_above) {
  for (int& rank : ranks) rank = name_of_rank(rank, ranks_above);
  return ranks;
}

/// 'rank 3', or 'ranks 1, 2 and 5'; of more than 8 ranks the first 8 and how many more.
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace lrun::detail
