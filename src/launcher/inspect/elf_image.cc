// In: the bytes of an ELF file. Out: names of functions, and the tables of their callers. Called by NativeLook.
#include "inspect/elf_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/fd.h"
#include "inspect/elf_symbols.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostNameBytes = 4096;

/// A part of the bytes; empty where it is not whole.
std::span<const unsigned char> slice(std::span<const unsigned char> bytes, std::uint64_t offset, std::uint64_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) return {};
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
}

/// Up to its zero, or to its version behind an '@'; empty where it is not there.
std::string_view name_at(std::span<const unsigned char> texts, std::uint64_t offset) {
  if (offset >= texts.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(texts.data()) + offset;
  const std::string_view name(
      begin, ::strnlen(begin, std::min(kMostNameBytes, texts.size() - static_cast<std::size_t>(offset))));
  return name.substr(0, name.find('@'));
}

/// Less is better. Of two functions the smaller one is inside; one of several names is the one that others call it by.
std::tuple<Address, bool, std::size_t> rank_of(const Elf64_Sym& symbol, std::span<const unsigned char> texts) {
  const std::string_view name = name_at(texts, symbol.st_name);
  const std::size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return {symbol.st_size, ELF64_ST_BIND(symbol.st_info) == STB_LOCAL, underscores};
}

}  // namespace

std::optional<ElfImage> ElfImage::of_file(const std::string& path) {
  // To open a device may have an effect.
  const Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat facts {};
  if (!place || ::fstat(place.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0) return std::nullopt;
  const Fd file(::open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (begin == MAP_FAILED) return std::nullopt;
  const std::shared_ptr<const void> owner(begin, [size](const void* it) { ::munmap(const_cast<void*>(it), size); });
  ElfImage image(owner, {static_cast<const unsigned char*>(begin), size});
  return image.read_parts() ? std::optional(std::move(image)) : std::nullopt;
}

std::optional<ElfImage> ElfImage::of_bytes(std::vector<unsigned char> bytes) {
  const auto owner = std::make_shared<const std::vector<unsigned char>>(std::move(bytes));
  ElfImage image(owner, *owner);
  return image.read_parts() ? std::optional(std::move(image)) : std::nullopt;
}

bool ElfImage::read_parts() {
  const auto header = value_at<Elf64_Ehdr>(bytes_, 0);
  if (!is_elf(header)) return false;
  const auto table = slice(bytes_, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr));
  for (std::size_t at = 0; at < table.size(); at += sizeof(Elf64_Phdr)) {
    parts_.push_back(value_at<Elf64_Phdr>(table, at));
  }
  return !parts_.empty();
}

CallFrameTables ElfImage::call_frames() const {
  CallFrameTables tables;
  for (const Elf64_Phdr& part : parts_) {
    if (part.p_type == PT_GNU_EH_FRAME) tables.index = part.p_vaddr;
  }
  for (const Elf64_Phdr& part : parts_) {
    const bool has_index = part.p_type == PT_LOAD && tables.index != 0 && part.p_vaddr <= tables.index &&
                           tables.index - part.p_vaddr < part.p_filesz;
    if (!has_index) continue;
    tables.part = slice(bytes_, part.p_offset, part.p_filesz);
    tables.address = part.p_vaddr;
  }
  return tables;
}

std::optional<Address> ElfImage::code_address_of(std::uint64_t offset) const {
  for (const Elf64_Phdr& part : parts_) {
    // Some linkers begin the code in the page in which something else ends.
    const bool is_code = part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0;
    if (is_code && part.p_offset <= offset && offset - part.p_offset < part.p_filesz) {
      return part.p_vaddr + (offset - part.p_offset);
    }
  }
  return std::nullopt;
}

std::optional<Elf64_Shdr> ElfImage::symbols_section(Elf64_Word type) const {
  const auto header = value_at<Elf64_Ehdr>(bytes_, 0);
  const auto sections = slice(bytes_, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  for (std::size_t at = 0; at < sections.size(); at += sizeof(Elf64_Shdr)) {
    const auto section = value_at<Elf64_Shdr>(sections, at);
    if (section.sh_type == type && section.sh_link < header.e_shnum) return section;
  }
  return std::nullopt;
}

std::vector<std::string> ElfImage::functions_at(const std::vector<Address>& addresses) const {
  std::vector<std::string> names(addresses.size());
  // All names that the linker knew; stripped files have those that they offer to others.
  std::optional<Elf64_Shdr> section = symbols_section(SHT_SYMTAB);
  if (!section) section = symbols_section(SHT_DYNSYM);
  if (!section) return names;
  const auto header = value_at<Elf64_Ehdr>(bytes_, 0);
  const auto link =
      value_at<Elf64_Shdr>(bytes_, static_cast<std::size_t>(header.e_shoff) + section->sh_link * sizeof(Elf64_Shdr));
  const auto symbols = slice(bytes_, section->sh_offset, section->sh_size);
  const auto texts = slice(bytes_, link.sh_offset, link.sh_size);

  std::vector<std::size_t> order(addresses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return addresses[a] < addresses[b]; });
  std::vector<std::optional<Elf64_Sym>> best(addresses.size());
  const auto names_better = [&](const Elf64_Sym& one, const Elf64_Sym& other) {
    return rank_of(one, texts) < rank_of(other, texts);
  };
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = value_at<Elf64_Sym>(symbols, at);
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
    auto next = std::lower_bound(order.begin(), order.end(), symbol.st_value,
                                 [&](std::size_t one, Address value) { return addresses[one] < value; });
    for (; next != order.end() && addresses[*next] - symbol.st_value < symbol.st_size; ++next) {
      std::optional<Elf64_Sym>& known = best[*next];
      if (!known || names_better(symbol, *known)) known = symbol;
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (best[i]) names[i] = name_at(texts, best[i]->st_name);
  }
  return names;
}

}  // namespace lrun::launcher
