#pragma once

#include <elf.h>

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/memory_reader.h"

namespace lrun::test {

/// Memory of a process that does not exist.
class MadeUpMemory {
 public:
  void put_bytes(launcher::Address address, const void* bytes, std::size_t count) {
    const auto* const from = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < count; ++i) bytes_[address + i] = from[i];
  }
  template <typename Value>
  void put(launcher::Address address, Value value) {
    put_bytes(address, &value, sizeof value);
  }
  [[nodiscard]] bool read(const launcher::MemoryPiece& piece) const {
    auto byte = bytes_.find(piece.address);
    for (std::size_t i = 0; i < piece.bytes; ++i, ++byte) {
      if (byte == bytes_.end() || byte->first != piece.address + i) return false;
      static_cast<unsigned char*>(piece.to)[i] = byte->second;
    }
    return true;
  }
  /// `bytes` of zeros, where nothing is yet.
  void fill(launcher::Address address, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) bytes_.try_emplace(address + i, static_cast<unsigned char>(0));
  }

  /// A loaded ELF file whose dynamic table has addresses as in the file, or absolute ones.
  void put_library(launcher::Address start, const std::map<std::string, launcher::Address>& symbols,
                   bool relative = false) {
    constexpr launcher::Address kDynamic = 0x200;
    constexpr launcher::Address kSymbols = 0x1000;
    constexpr launcher::Address kStrings = 0x2000;
    constexpr launcher::Address kHash = 0x3000;
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_phoff = sizeof header;
    header.e_phnum = 2;
    put(start, header);
    put(start + sizeof header, Elf64_Phdr{.p_type = PT_LOAD});
    put(start + sizeof header + sizeof(Elf64_Phdr),
        Elf64_Phdr{.p_type = PT_DYNAMIC, .p_vaddr = kDynamic, .p_memsz = 4 * sizeof(Elf64_Dyn)});
    const launcher::Address base = relative ? 0 : start;
    put(start + kDynamic, Elf64_Dyn{DT_SYMTAB, {base + kSymbols}});
    put(start + kDynamic + 16, Elf64_Dyn{DT_STRTAB, {base + kStrings}});
    put(start + kDynamic + 32, Elf64_Dyn{DT_GNU_HASH, {base + kHash}});
    put(start + kDynamic + 48, Elf64_Dyn{DT_NULL, {0}});
    struct {
      std::uint32_t buckets = 1, first = 1, words = 1, shift = 0;
      std::uint64_t filter = 0;
      std::uint32_t bucket = 1;
    } hash;
    put_bytes(start + kHash, &hash, 28);
    std::uint32_t index = 1;
    std::uint32_t text = 1;
    for (const auto& [name, address] : symbols) {
      std::uint32_t value = 5381;
      for (const char letter : name) value = value * 33 + static_cast<unsigned char>(letter);
      const bool last = index == symbols.size();
      put(start + kHash + 28 + (index - 1) * 4, last ? value | 1U : value & ~1U);
      put(start + kSymbols + index * sizeof(Elf64_Sym),
          Elf64_Sym{.st_name = text, .st_shndx = 1, .st_value = address - start});
      put_bytes(start + kStrings + text, name.c_str(), name.size() + 1);
      text += static_cast<std::uint32_t>(name.size() + 1);
      ++index;
    }
  }

 private:
  std::map<launcher::Address, unsigned char> bytes_;
};

/// CPython 3.11 with one interpreter; the offsets are those of its headers.
class MadeUpPython : public MadeUpMemory {
 public:
  static constexpr launcher::Address kLibrary = 0x7f0000000000;
  static constexpr launcher::Address kRuntime = 0x7f0000100000;
  static constexpr launcher::Address kVersion = 0x7f0000200000;
  static constexpr launcher::Address kCodeType = 0x7f0000300000;
  static constexpr launcher::Address kInterpreter = 0x10000;

  explicit MadeUpPython(std::uint64_t version = 0x030b02f0, std::map<std::string, launcher::Address> more = {}) {
    more.insert({{"_PyRuntime", kRuntime}, {"Py_Version", kVersion}, {"PyCode_Type", kCodeType}});
    put_library(kLibrary, more);
    put(kVersion, version);
    put(kRuntime + 40, kInterpreter);
    fill(kRuntime, 1024);
    fill(kInterpreter, 256);
  }

  launcher::Address add_text(std::string_view ascii) {
    const launcher::Address text = take(48 + ascii.size());
    put(text + 16, std::uint64_t{ascii.size()});
    put(text + 32, std::uint32_t{1U << 2U | 1U << 5U | 1U << 6U});
    put_bytes(text + 48, ascii.data(), ascii.size());
    return text;
  }
  /// A function whose instructions are all in one line.
  launcher::Address add_code(std::string_view file, launcher::Address name, std::int32_t line) {
    const launcher::Address code = take(192);
    const launcher::Address lines = take(48);
    put(lines + 16, std::uint64_t{1});
    put(lines + 32, static_cast<unsigned char>(128 | 10 << 3 | 7));
    put(code + 8, kCodeType);
    put(code + 112, add_text(file));
    put(code + 120, name);
    put(code + 72, line);
    put(code + 136, lines);
    return code;
  }
  launcher::Address add_code(std::string_view file, std::string_view name, std::int32_t line) {
    return add_code(file, add_text(name), line);
  }
  /// A thread with these calls, innermost first.
  launcher::Address add_thread(const std::vector<launcher::Address>& codes) {
    const launcher::Address thread = take(512);
    const launcher::Address record = take(16);
    put(thread + 8, newest_);
    put(thread + 16, kInterpreter);
    put(thread + 56, record);
    put(kInterpreter + 16, thread);
    newest_ = thread;
    launcher::Address outer = 0;
    for (auto code = codes.rbegin(); code != codes.rend(); ++code) {
      const launcher::Address frame = take(72);
      put(frame + 48, outer);
      put(frame + 32, *code);
      put(frame + 56, *code + 184 + 2);
      outer = frame;
      frames.push_back(frame);
    }
    put(record + 8, outer);
    return thread;
  }
  std::vector<launcher::Address> frames{};  ///< outermost first, thread by thread

  launcher::Address take(std::size_t bytes) {
    const launcher::Address at = next_;
    next_ += (bytes + 63) / 64 * 64;
    fill(at, bytes);
    return at;
  }

 private:
  launcher::Address next_ = 0x100000;
  launcher::Address newest_ = 0;
};

}  // namespace lrun::test
