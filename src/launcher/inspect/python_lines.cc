#include "inspect/python_lines.h"

#include <algorithm>
#include <cstddef>

namespace lrun::launcher {
namespace {

using LineBytes = std::span<const unsigned char>;

/// Lines are numbers of the process, and what is added to them, too: a sum may be too large for an int.
int sum_of_lines(int line, std::int64_t step) {
  constexpr std::int64_t kMostLines = 1'000'000'000;
  return static_cast<int>(std::clamp(line + step, -kMostLines, kMostLines));
}

/// A byte as a number with a sign, -128 to 127.
int signed_byte(unsigned char byte) { return byte < 128 ? byte : byte - 256; }

/// Pairs of bytes: so many bytes of code, and then so many lines further.
int line_by_lnotab(LineBytes table, int line, std::int64_t offset) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    end += table[i];
    if (end > offset) break;
    line = sum_of_lines(line, signed_byte(table[i + 1]));
  }
  return line;
}

/// Pairs of bytes: so many lines further, for so many bytes of code.
std::optional<int> line_by_pairs(LineBytes table, int line, std::int64_t offset) {
  constexpr int kNoLine = -128;
  std::int64_t end = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    const int step = signed_byte(table[i + 1]);
    end += table[i];
    if (step != kNoLine) line = sum_of_lines(line, step);
    if (offset < end) return step == kNoLine ? std::nullopt : std::optional(line);
  }
  return std::nullopt;
}

/// A number with a sign in bytes of six bits, the lowest first.
std::int64_t signed_number(LineBytes bytes) {
  constexpr unsigned kMostShift = 30;
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const unsigned char byte : bytes) {
    value |= (byte & 63ULL) << shift;
    if ((byte & 64U) == 0) break;
    shift = std::min(shift + 6, kMostShift);
  }
  const auto size = static_cast<std::int64_t>(value >> 1U);
  return (value & 1U) != 0 ? -size : size;
}

/// Entries whose first byte alone has the highest bit: a kind, and for how many units of two bytes of code it is.
std::optional<int> line_by_entries(LineBytes table, int line, std::int64_t offset) {
  constexpr unsigned kOneLine = 10;  // this kind and the next two: 0, 1, 2 lines further
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kLong = 14;
  constexpr unsigned kNoLine = 15;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < table.size();) {
    const unsigned kind = table[i] >> 3U & 15U;
    end += ((table[i] & 7U) + 1) * 2;
    if (kind >= kOneLine && kind < kNoColumns) line = sum_of_lines(line, kind - kOneLine);
    if (kind == kNoColumns || kind == kLong) line = sum_of_lines(line, signed_number(table.subspan(i + 1)));
    if (offset < end) return kind == kNoLine ? std::nullopt : std::optional(line);
    do {
      ++i;
    } while (i < table.size() && (table[i] & 128U) == 0);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> python_line(int minor, LineBytes table, int first_line, std::int64_t offset) {
  if (offset < 0) return first_line;
  if (minor == 9) return line_by_lnotab(table, first_line, offset);
  return minor == 10 ? line_by_pairs(table, first_line, offset) : line_by_entries(table, first_line, offset);
}

}  // namespace lrun::launcher
