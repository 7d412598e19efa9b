#pragma once

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

/// 'rank 3', or 'ranks 1, 2 and 5'; of more than 8 ranks the first 8 and how many more.
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace lrun::detail
