#include "cli/device_argument.h"

#include <algorithm>
#include <vector>

#include "base/nearest.h"
#include "base/user_error.h"
#include "cli/read_value.h"

namespace lrun::launcher {
namespace {

constexpr int kMostDevices = 16'384;  // beyond any machine; devices x nodes stays an int
constexpr const char* kAllowed = "allowed: a count such as 8, a list such as 2,3, auto or -1";

[[noreturn]] void refuse_devices(const GivenValue& given, const std::string& problem, const std::string& hint) {
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
  const auto number = whole_number<int>(field);
  if (!number || *number < 0 || *number >= kMostDevices)
    refuse_devices(given, "'" + field + "' is not the number of a device", example(given, "0,2"));
  return std::to_string(*number);
}

std::string parse_list(const GivenValue& given, const std::string& list) {
  std::vector<std::string> ids;
  for (const std::string& field : fields_of(list)) {
    std::string id = is_uuid(field) ? field : device_number(given, field);
    if (std::find(ids.begin(), ids.end(), id) != ids.end())
      refuse_devices(given, "device " + id + " is named twice", "name every device once");
    ids.push_back(std::move(id));
  }
  if (ids.empty()) refuse_devices(given, "no device is named", example(given, "8"));
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : ",") + id;
  return ids.size() == 1 ? text + "," : text;  // the comma keeps 'device 2' apart from 'two devices'
}

}  // namespace

std::string parse_device_argument(const GivenValue& given) {
  std::string text = bare(given.text);
  if (text == "auto" || text == "-1") return text;
  if (text.empty()) refuse_devices(given, "no device is named", example(given, "8"));
  if (text.find(',') != std::string::npos || is_uuid(text)) return parse_list(given, text);
  const auto count = whole_number<int>(text);
  if (!count) {
    refuse_devices(given, "neither a count nor a list of devices",
                   text == "all" ? did_you_mean("-1") : nearest_hint(lower_case(text), {"auto"}, example(given, "2")));
  }
  if (*count == 0) refuse_devices(given, "no device is asked for", "'0,' is only device 0");
  if (*count < 0) refuse_devices(given, "no such number of devices", "'-1' is all GPUs");
  if (*count > kMostDevices)
    refuse_devices(given, "no such number of devices", example(given, std::to_string(kMostDevices)));
  return std::to_string(*count);
}

}  // namespace lrun::launcher
