#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// `text` as a string of JSON, with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

/// The value on one line. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& json);

/// The strings of JSON as an array.
std::string json_array(const std::vector<std::string>& texts);

/// A whole number of JSON that another program wrote, as int or std::int64_t. The library's own get() takes 1e300 and
/// numbers that do not fit, and gives another number. 64 bits are bounded to ±2^61, so that sums of a few do not
/// overflow. \throws nlohmann::json::type_error  no number, a fraction, or out of range.
template <class Integer = int>
Integer json_integer(const nlohmann::json& value);

}  // namespace lrun::inline core
