// In: the text of a worker's error file. Out: its message and traceback; and the error file that lrun itself writes for
// the process that started it. The run reads one for each failed worker.
#include "verdict/error_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "verdict/failure_record.h"

namespace lrun::inline core {
namespace {

using Json = nlohmann::json;

constexpr int kDeepestNesting = 16;  // torch needs 3 levels; deeper ones are dropped while reading

/// A file full of brackets must not cost more memory than its length.
Json parse_bounded(std::string_view text) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepestNesting; };
  return Json::parse(text.begin(), text.end(), shallow, /*allow_exceptions=*/false);
}

/// A time that json_integer() can read on other nodes, also after the shift to another clock.
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 60U;

std::int64_t to_seconds(const Json& value) {
  if (value.is_number_unsigned()) {
    constexpr std::uint64_t kMost = kMostSeconds;
    return static_cast<std::int64_t>(std::min(value.get<std::uint64_t>(), kMost));
  }
  if (value.is_number_integer()) return std::max<std::int64_t>(0, value.get<std::int64_t>());
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::clamp<std::int64_t>(seconds, 0, kMostSeconds) : 0;
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t seconds_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? 0 : to_seconds(*found);
}

Json details(std::string_view message, std::string_view call_stack, std::int64_t time) {
  return {{"message", message}, {"extraInfo", {{"py_callstack", call_stack}, {"timestamp", std::to_string(time)}}}};
}

}  // namespace

std::optional<ErrorFile> parse_error_file(std::string_view text) {
  if (text.empty() || text.size() > ErrorFile::kMostBytes) return std::nullopt;
  const Json json = parse_bounded(text);
  if (!json.is_object()) return std::nullopt;
  const auto message = json.find("message");
  if (message == json.end()) return std::nullopt;
  ErrorFile file;
  file.text = text;
  if (message->is_string()) {
    file.plain = true;
    file.message = message->get<std::string>();
    file.time = seconds_at(json, "timestamp");
    return file;
  }
  if (!message->is_object()) return std::nullopt;
  file.message = text_at(*message, "message");
  const auto extra = message->find("extraInfo");
  if (extra != message->end() && extra->is_object()) {
    file.call_stack = text_at(*extra, "py_callstack");
    file.time = seconds_at(*extra, "timestamp");
  }
  if (file.message.empty() && file.call_stack.empty()) return std::nullopt;
  return file;
}

std::string error_file_for_parent(const FailureRecord& record, const std::optional<ErrorFile>& own, int exit_code,
                                  const std::string& cause) {
  if (own && own->plain) return own->text;  // as torchrun does: a text has no place for a code
  Json json;
  if (own) {
    json = parse_bounded(own->text);
  } else {
    std::string stack;
    for (const std::string& line : record.evidence) stack += line + "\n";
    std::string message = record.error.empty() ? record.describe() : record.error;
    // The parent knows our exit code, but not which worker it comes from.
    if (record.error.empty() && record.ending == FailureRecord::Ending::kExited) {
      message = "rank " + std::to_string(record.rank) + " " + message;
    }
    json = {{"message", details(message, stack, record.wall_ns / 1'000'000'000)}};
  }
  if (!cause.empty()) {
    const std::string message = text_at(json["message"], "message");
    json["message"]["message"] = message + (message.empty() ? "" : "; ") + cause;
  }
  json["message"]["errorCode"] = exit_code;
  return json_text(json);
}

std::string error_file_of_launcher(std::string_view message, std::int64_t time) {
  return json_text({{"message", details(message, "", time)}});
}

}  // namespace lrun::inline core
