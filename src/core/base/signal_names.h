#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::inline core {

/// 15 → "SIGTERM"; a real-time or unknown number → "signal 40".
std::string signal_name(int signal_number);

/// "SIGTERM", "TERM" or "15" → 15; empty when there is no such signal.
std::optional<int> parse_signal(std::string_view text);

/// The meaning of a signal for a person: 11 → "invalid memory access"; empty where the name says it all.
std::string_view signal_meaning(int signal_number);

}  // namespace lrun::inline core
