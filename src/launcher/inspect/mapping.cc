#include "inspect/mapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "base/split.h"

namespace lrun::launcher {
namespace {

/// \return false: it is no hexadecimal number
bool read_hexadecimal(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<Mapping> mapping_of(std::string_view line) {
  Mapping mapping;
  std::string_view range = cut(line, ' ');
  const std::string_view begin = cut(range, '-');
  if (!read_hexadecimal(begin, mapping.begin) || !read_hexadecimal(range, mapping.end)) return std::nullopt;
  (void)cut(line, ' ');  // permissions
  if (!read_hexadecimal(cut(line, ' '), mapping.offset)) return std::nullopt;
  (void)cut(line, ' ');  // device
  (void)cut(line, ' ');  // inode
  mapping.path = trimmed(line);
  return mapping;
}

std::vector<Mapping> mappings_of(pid_t pid) {
  constexpr std::size_t kMost = 1'000'000;
  std::vector<Mapping> mappings;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; mappings.size() < kMost && std::getline(maps, line);) {
    if (std::optional<Mapping> mapping = mapping_of(line)) mappings.push_back(*std::move(mapping));
  }
  return mappings;
}

const Mapping* mapping_at(const std::vector<Mapping>& mappings, Address address) {
  const auto after = std::upper_bound(mappings.begin(), mappings.end(), address,
                                      [](Address value, const Mapping& it) { return value < it.begin; });
  return after == mappings.begin() || address >= std::prev(after)->end ? nullptr : &*std::prev(after);
}

}  // namespace lrun::launcher
