#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/memory_reader.h"

namespace lrun::launcher {

/// A part of the memory of a process, and what it shows.
struct Mapping {
  Address begin = 0;
  Address end = 0;
  std::uint64_t offset = 0;  ///< in its file
  std::string path;          ///< of its file, or '[stack]', '[vdso]' …; empty: neither

  /// Its file begins here.
  [[nodiscard]] bool is_first_of_file() const { return offset == 0 && path.starts_with('/'); }

  bool operator==(const Mapping&) const = default;
};

/// A line of /proc/PID/maps; empty for any other text. Pure.
std::optional<Mapping> mapping_of(std::string_view line);

/// All of a process, a million at most, in the order of their addresses; none where they cannot be read.
std::vector<Mapping> mappings_of(pid_t pid);

/// nullptr: nothing is mapped there.
const Mapping* mapping_at(const std::vector<Mapping>& mappings, Address address);

}  // namespace lrun::launcher
