#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// `text` as a string of JSON, with its quotes. What is not UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

/// The value on one line. What is not UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::json& json);

/// The strings of JSON as an array.
std::string json_array(const std::vector<std::string>& texts);

}  // namespace lrun::inline core
