#include "base/duration.h"

#include <fmt/format.h>

#include <array>

namespace lrun::inline core {
namespace {

struct Unit {
  std::string_view name;
  double milliseconds;
};
constexpr std::array<Unit, 7> kUnits{
    {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"min", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr double kLongestMilliseconds = 10.0 * 365 * 86'400'000;

bool is_digit(char character) { return character >= '0' && character <= '9'; }

/// '90' or '1.5' at the front of `text`, cut off. Not std::from_chars(), which for fractions needs libm: the launcher
/// needs no library but libc.
double cut_number(std::string_view& text) {
  double number = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) number = number * 10 + (text.front() - '0');
  if (text.empty() || text.front() != '.') return number;
  text.remove_prefix(1);
  for (double place = 0.1; !text.empty() && is_digit(text.front()); text.remove_prefix(1), place /= 10) {
    number += (text.front() - '0') * place;
  }
  return number;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  const double number = cut_number(text);
  for (const Unit& unit : kUnits) {
    if (text != unit.name) continue;
    const double milliseconds = number * unit.milliseconds;
    if (milliseconds > kLongestMilliseconds) return std::nullopt;
    return Duration((static_cast<Duration::rep>(2 * milliseconds) + 1) / 2);  // to the nearest; never negative
  }
  return std::nullopt;
}

std::string format_duration(Duration duration) {
  const auto count = duration.count();
  if (count % 1000 != 0) return fmt::format("{}ms", count);
  if (count != 0 && count % 3'600'000 == 0) return fmt::format("{}h", count / 3'600'000);
  if (count != 0 && count % 60'000 == 0) return fmt::format("{}m", count / 60'000);
  return fmt::format("{}s", count / 1000);
}

std::string format_elapsed(Duration duration) {
  const auto count = duration.count();
  if (count < 60'000) return fmt::format("{}.{}s", count / 1000, count % 1000 / 100);
  const auto seconds = count / 1000;
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

}  // namespace lrun::inline core
