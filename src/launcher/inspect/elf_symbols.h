#pragma once

#include <elf.h>

#include <optional>
#include <string_view>

#include "inspect/memory_reader.h"

namespace lrun::launcher {

/// Of 64 bits, and of this machine's order of bytes, with a sound number of segments.
bool is_elf(const Elf64_Ehdr& header);

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
