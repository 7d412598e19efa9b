#include "base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace lrun::inline core {
namespace {

bool stands_for_itself(char letter) { return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\'; }

}  // namespace

std::string json_string(std::string_view text) {
  // Nearly all that lrun writes; a tree of JSON for each of many workers would cost more than their start.
  if (std::all_of(text.begin(), text.end(), stands_for_itself)) {
    std::string quoted;
    quoted.reserve(text.size() + 2);
    return quoted.append("\"").append(text).append("\"");
  }
  return json_text(nlohmann::json(text));
}

std::string json_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_array(const std::vector<std::string>& texts) {
  std::string array = "[";
  for (const std::string& text : texts) array.append(array.size() > 1 ? "," : "").append(json_string(text));
  return array + "]";
}

template <class Integer>
Integer json_integer(const nlohmann::json& value) {
  constexpr std::int64_t kMost =
      std::is_same_v<Integer, int> ? std::int64_t{std::numeric_limits<int>::max()} : std::int64_t{1} << 61U;
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMost)
                                               : value.is_number_integer() && value.get<std::int64_t>() >= -kMost;
  if (!fits) throw nlohmann::json::type_error::create(302, "not a whole number, or out of range", &value);
  return static_cast<Integer>(value.get<std::int64_t>());
}
template int json_integer<int>(const nlohmann::json& value);
template std::int64_t json_integer<std::int64_t>(const nlohmann::json& value);

}  // namespace lrun::inline core
