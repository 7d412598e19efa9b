// In: the memory of a process. Out: the addresses of symbols of a loaded file. Called by find_python(). Bounded by
// MemoryReader: the memory may hold anything.
#include "inspect/elf_symbols.h"

#include <bit>
#include <cstring>

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostDynamicBytes = 64 * 1024;

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char letter : name) hash = hash * 33 + static_cast<unsigned char>(letter);
  return hash;
}

struct HashHeader {
  std::uint32_t buckets;
  std::uint32_t first_symbol;
  std::uint32_t filter_words;
  std::uint32_t filter_shift;
};

}  // namespace

bool is_elf(const Elf64_Ehdr& header) {
  constexpr int kMostSegments = 256;
  constexpr unsigned char kOwnOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == kOwnOrder && header.e_phnum <= kMostSegments;
}

std::optional<ElfSymbols> ElfSymbols::at(MemoryReader& memory, Address start) {
  const auto header = memory.value<Elf64_Ehdr>(start);
  if (!is_elf(header)) return std::nullopt;
  const auto parts = memory.bytes(start + header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr));
  ElfSymbols symbols;
  Elf64_Phdr dynamic{};
  for (std::size_t at = 0; at < parts.size(); at += sizeof(Elf64_Phdr)) {
    const auto part = value_at<Elf64_Phdr>(parts, at);
    if (part.p_type == PT_LOAD && part.p_offset == 0) symbols.bias_ = start - part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) dynamic = part;
  }
  if (dynamic.p_memsz > kMostDynamicBytes) return std::nullopt;
  const auto entries = memory.bytes(dynamic.p_vaddr + symbols.bias_, dynamic.p_memsz);
  for (std::size_t at = 0; at < entries.size(); at += sizeof(Elf64_Dyn)) {
    const auto entry = value_at<Elf64_Dyn>(entries, at);
    if (entry.d_tag == DT_NULL) break;
    // glibc has made them absolute, musl leaves them as they are in the file.
    const Address place = entry.d_un.d_ptr + (entry.d_un.d_ptr < start ? symbols.bias_ : 0);
    if (entry.d_tag == DT_SYMTAB) symbols.symbols_ = place;
    if (entry.d_tag == DT_STRTAB) symbols.strings_ = place;
    if (entry.d_tag == DT_GNU_HASH) symbols.hash_ = place;
  }
  if (symbols.symbols_ == 0 || symbols.strings_ == 0 || symbols.hash_ == 0) return std::nullopt;
  return symbols;
}

Address ElfSymbols::find(MemoryReader& memory, std::string_view name) const {
  const std::uint32_t wanted = gnu_hash(name);
  const auto header = memory.value<HashHeader>(hash_);
  if (header.buckets == 0) return 0;
  const Address buckets = hash_ + sizeof header + Address{header.filter_words} * 8;
  const Address chain = buckets + Address{header.buckets} * 4;
  auto index = memory.value<std::uint32_t>(buckets + Address{wanted % header.buckets} * 4);
  for (std::uint32_t link = 0; index >= header.first_symbol && (link & 1U) == 0; ++index) {
    if (!memory.read(chain + Address{index - header.first_symbol} * 4, &link, sizeof link)) return 0;
    if ((link | 1U) != (wanted | 1U)) continue;  // the lowest bit marks the end
    const auto symbol = memory.value<Elf64_Sym>(symbols_ + Address{index} * sizeof(Elf64_Sym));
    const auto text = memory.bytes(strings_ + symbol.st_name, name.size() + 1);
    const bool same = !text.empty() && std::memcmp(text.data(), name.data(), name.size()) == 0 && text.back() == 0;
    if (same) return symbol.st_shndx == SHN_UNDEF ? 0 : symbol.st_value + bias_;
  }
  return 0;
}

}  // namespace lrun::launcher
