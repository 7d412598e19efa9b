#include "base/duration.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace lrun {
namespace {

struct Unit {
  std::string_view name;
  double milliseconds;
};
constexpr std::array<Unit, 6> kUnits{
    {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr double kLongestMilliseconds = 10.0 * 365 * 86'400'000;

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& unit : kUnits) {
    if (suffix != unit.name) continue;
    const double milliseconds = number * unit.milliseconds;
    if (milliseconds > kLongestMilliseconds) return std::nullopt;
    return Duration(std::llround(milliseconds));
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

}  // namespace lrun
