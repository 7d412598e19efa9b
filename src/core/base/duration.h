#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::inline core {

using Duration = std::chrono::milliseconds;

/// Reads '30', '30s', '1.5m', '250ms', '2h', '1d'; a bare number is seconds.
/// Empty when the text is none of these, negative, or longer than ten years.
std::optional<Duration> parse_duration(std::string_view text);

/// The shortest exact form for people: '250ms', '30s', '90s', '5m', '2h'.
std::string format_duration(Duration duration);

/// Time since a start, for verdicts: '0.4s', '12.3s', '14m32s', '3h05m'.
std::string format_elapsed(Duration duration);

}  // namespace lrun::inline core
