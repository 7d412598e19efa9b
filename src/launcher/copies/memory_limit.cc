#include "copies/memory_limit.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/kernel_text.h"
#include "base/small_file.h"
#include "process/memory_watch.h"
#include "process/storage_space.h"

namespace lrun::launcher {
namespace {

/// The free memory of the machine; empty where it is unknown.
std::optional<std::uint64_t> available_memory() {
  constexpr std::size_t kMostMeminfoBytes = 64 * 1024;
  const auto kib = counter_named(read_small_file("/proc/meminfo", kMostMeminfoBytes).value_or(""), "MemAvailable:");
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

}  // namespace

std::uint64_t default_memory_limit(const std::string& folder, std::uint64_t kept) {
  std::uint64_t free = ~std::uint64_t{0};
  if (const auto space = storage_space(folder.c_str())) free = space->free_bytes + kept;
  if (const auto available = available_memory()) free = std::min(free, *available + kept);
  if (const std::uint64_t limit = MemoryWatch().limit(); limit > 0) free = std::min(free, limit);
  return free / 4;
}

}  // namespace lrun::launcher
