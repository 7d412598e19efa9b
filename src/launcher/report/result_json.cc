#include "report/result_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/split.h"

namespace lrun::launcher {

std::string result_json(const std::string& run_id, const Verdict& verdict, const std::vector<FailureRecord>& records,
                        const std::string& text, const std::string& hint) {
  std::string endings;
  for (const FailureRecord& record : records) {
    endings += (endings.empty() ? "\n  " : ",\n  ") + to_json(record);
  }
  return fmt::format(
      R"({{"schema": 1, "run_id": {}, "reason": "{}", "signal": {}, "exit_code": {}, "restarts": {}, "watched_rank": {},
 "culprit": {},
 "overruled": {},
 "hint": {},
 "text": {},
 "workers": [{}]}}
)",
      json_string(run_id), name_of(verdict.end.kind), verdict.end.signal_number, verdict.exit_code, verdict.restarts,
      verdict.end.rank, verdict.culprit ? to_json(*verdict.culprit) : "null",
      verdict.overruled ? to_json(*verdict.overruled) : "null", json_string(hint), json_string(text), endings);
}

std::string hint_in(std::string_view text) {
  constexpr std::string_view kBegin = "lrun: hint: ";
  std::string hint;
  for (const std::string& line : split_lines(text)) {
    if (line.starts_with(kBegin)) hint = line.substr(kBegin.size());
  }
  return hint;
}

std::optional<FailureRecord> culprit_in(std::string_view result_json) {
  try {
    const nlohmann::json culprit = nlohmann::json::parse(result_json).at("culprit");
    return culprit.is_null() ? std::nullopt : failure_record_from_json(json_text(culprit));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
