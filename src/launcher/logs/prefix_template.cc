#include "logs/prefix_template.h"

#include <optional>

namespace lrun::launcher {
namespace {

bool begins_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

/// The name that `text` begins with; empty when it begins with none.
std::string_view name_at(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() &&
         (begins_name(text[length]) || (length > 0 && text[length] >= '0' && text[length] <= '9'))) {
    ++length;
  }
  return text.substr(0, length);
}

std::optional<std::string> value_of(std::string_view name, const PrefixFacts& facts) {
  if (name == "role_name") return facts.role_name;
  if (name == "local_rank") return std::to_string(facts.local_rank);
  if (name == "rank") return std::to_string(facts.rank);
  if (name == "hostname") return facts.hostname;
  return std::nullopt;
}

}  // namespace

std::string expand_prefix(std::string_view text, const PrefixFacts& facts) {
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const bool braced = text.starts_with('{');
    const std::string_view name = name_at(text.substr(braced ? 1 : 0));
    const std::size_t length = name.size() + (braced ? 2 : 0);
    const bool closed = !braced || text.substr(name.size() + 1).starts_with('}');
    const auto value = closed ? value_of(name, facts) : std::nullopt;
    if (text.starts_with('$')) {
      result += '$';
      text.remove_prefix(1);
    } else if (value) {
      result += *value;
      text.remove_prefix(length);
    } else {
      result += '$';
    }
  }
  return result;
}

}  // namespace lrun::launcher
