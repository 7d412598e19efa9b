#include "base/json_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>

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

}  // namespace lrun::inline core
