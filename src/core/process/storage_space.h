#pragma once

#include <cstdint>
#include <optional>

namespace lrun::inline core {

/// How much a file system holds and has left.
struct StorageSpace {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;

  /// Less than one hundredth is left: the next page may not fit.
  [[nodiscard]] bool full() const;
  bool operator==(const StorageSpace&) const = default;
};

/// Empty where there is no such folder.
std::optional<StorageSpace> storage_space(const char* folder);

}  // namespace lrun::inline core
