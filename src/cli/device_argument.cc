#include "cli/device_argument.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/user_error.h"

namespace lrun {
namespace {

constexpr int kMostDevices = 16'384;  // beyond any machine; devices x nodes stays an int
constexpr const char* kAllowed = "allowed: a count such as 8, a list such as 2,3, auto or -1";

[[noreturn]] void refuse(const GivenValue& given, const std::string& problem, const std::string& hint = {}) {
  throw UserError(given.quoted() + ": " + problem + "; " + kAllowed, hint);
}

/// Without blanks and quotes: people copy "0,2" with its quotes from YAML and JSON.
std::string bare(const std::string& text) {
  std::string bare_text;
  for (const char letter : text) {
    if (letter != ' ' && letter != '\t' && letter != '"' && letter != '\'') bare_text += letter;
  }
  return bare_text;
}

std::optional<int> whole_number(const std::string& text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::vector<std::string> fields_of(const std::string& list) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) fields.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

/// As the NVIDIA driver names a GPU or a part of one.
bool is_uuid(const std::string& text) { return text.starts_with("GPU-") || text.starts_with("MIG-"); }

std::string device_number(const GivenValue& given, const std::string& field) {
  const auto number = whole_number(field);
  if (!number || *number < 0 || *number >= kMostDevices) refuse(given, "'" + field + "' is not the number of a device");
  return std::to_string(*number);
}

std::string parse_list(const GivenValue& given, const std::string& list) {
  std::vector<std::string> ids;
  for (const std::string& field : fields_of(list)) {
    std::string id = is_uuid(field) ? field : device_number(given, field);
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) refuse(given, "device " + id + " is named twice");
    ids.push_back(std::move(id));
  }
  if (ids.empty()) refuse(given, "no device is named");
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : ",") + id;
  return ids.size() == 1 ? text + "," : text;  // the comma keeps 'device 2' apart from 'two devices'
}

}  // namespace

std::string parse_device_argument(const GivenValue& given) {
  std::string text = bare(given.text);
  if (text == "auto" || text == "-1") return text;
  if (text.empty()) refuse(given, "no device is named");
  if (text.find(',') != std::string::npos || is_uuid(text)) return parse_list(given, text);
  const auto count = whole_number(text);
  if (!count) refuse(given, "neither a count nor a list of devices", text == "all" ? "did you mean '-1'?" : "");
  if (*count == 0) refuse(given, "no device is asked for", "'0,' is only device 0");
  if (*count < 0 || *count > kMostDevices) refuse(given, "no such number of devices");
  return std::to_string(*count);
}

}  // namespace lrun
