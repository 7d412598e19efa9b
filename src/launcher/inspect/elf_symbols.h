#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "inspect/memory_reader.h"

namespace lrun::launcher {

/// Where a file begins in the memory of a process.
struct LoadedFile {
  Address start = 0;
  std::string path;

  bool operator==(const LoadedFile&) const = default;
};

/// A line of /proc/PID/maps; empty for one that does not show the beginning of a file.
std::optional<LoadedFile> loaded_file_of(std::string_view line);

/// The names that a loaded ELF file of 64 bits offers to others, found in the memory of the process alone: its file may
/// be gone, or belong to another mount namespace. Pure but for the reader.
class ElfSymbols {
 public:
  /// \param start  where the file begins; \return empty: no such file is there, or it has no GNU hash table
  static std::optional<ElfSymbols> at(MemoryReader& memory, Address start);

  /// 0: it has no such symbol.
  Address find(MemoryReader& memory, std::string_view name) const;

 private:
  Address bias_ = 0;
  Address symbols_ = 0;
  Address strings_ = 0;
  Address hash_ = 0;
};

}  // namespace lrun::launcher
