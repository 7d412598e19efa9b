#pragma once

#include <elf.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/call_frames.h"
#include "inspect/memory_reader.h"

namespace lrun::launcher {

/// The bytes of an ELF file of 64 bits, which may hold anything: what its functions are called, and how they find their
/// callers. All addresses are those of the file.
class ElfImage {
 public:
  /// Maps a regular file. A file that somebody cuts off meanwhile ends this process with SIGBUS. Empty: it cannot be
  /// read, or is no such file.
  static std::optional<ElfImage> of_file(const std::string& path);
  static std::optional<ElfImage> of_bytes(std::vector<unsigned char> bytes);

  /// Its tables of functions and callers. `part` is empty: it has none.
  [[nodiscard]] CallFrameTables call_frames() const;
  /// The address of code at a place of the file. Empty: none is loaded from there.
  [[nodiscard]] std::optional<Address> code_address_of(std::uint64_t offset) const;
  /// The names of the functions at these addresses, as linkers write them; empty where none is known.
  [[nodiscard]] std::vector<std::string> functions_at(const std::vector<Address>& addresses) const;
  [[nodiscard]] std::span<const unsigned char> bytes() const { return bytes_; }

 private:
  ElfImage(std::shared_ptr<const void> owner, std::span<const unsigned char> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}
  bool read_parts();
  [[nodiscard]] std::optional<Elf64_Shdr> symbols_section(Elf64_Word type) const;

  std::shared_ptr<const void> owner_;  ///< of the bytes
  std::span<const unsigned char> bytes_;
  std::vector<Elf64_Phdr> parts_;
};

}  // namespace lrun::launcher
