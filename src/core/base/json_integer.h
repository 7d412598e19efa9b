#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace lrun::inline core {

/// A whole number of JSON that somebody else wrote. The library's own get() takes 1e300 and numbers that do not fit,
/// and gives something else. 64 bits are bounded to ±2^61, so that sums of a few do not overflow. \throws
/// nlohmann::json::type_error  no number, a fraction, or out of range.
template <class Integer = int>
Integer json_integer(const nlohmann::json& value) {
  static_assert(std::is_same_v<Integer, int> || std::is_same_v<Integer, std::int64_t>);
  constexpr std::int64_t kMost =
      std::is_same_v<Integer, int> ? std::int64_t{std::numeric_limits<int>::max()} : std::int64_t{1} << 61U;
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMost)
                                               : value.is_number_integer() && value.get<std::int64_t>() >= -kMost;
  if (!fits) throw nlohmann::json::type_error::create(302, "not a whole number, or out of range", &value);
  return static_cast<Integer>(value.get<std::int64_t>());
}

}  // namespace lrun::inline core
