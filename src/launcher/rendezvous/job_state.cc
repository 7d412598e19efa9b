#include "rendezvous/job_state.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "plan/run_id.h"
#include "rendezvous/join_record.h"
#include "rendezvous/message.h"

namespace lrun::launcher {

using Json = nlohmann::json;

std::string to_json(const JobState& state) {
  Json json = {{"round", state.round},   {"attempt", state.attempt}, {"history", state.history},
               {"run_id", state.run_id}, {"holder", state.leader},   {"members", state.members}};
  if (state.outcome) json["outcome"] = *state.outcome;
  return json_text(json);
}

std::string json_for_etcd(JobState state) {
  // Etcd takes requests of 1.5 MB, its gateway wants values in base64, and the next leader reads answers of 1 MB.
  constexpr std::size_t kMostBytes = std::size_t{512} << 10U;
  std::string json = to_json(state);
  if (json.size() <= kMostBytes) return json;
  state.members.clear();
  return to_json(state);
}

std::optional<JobState> job_state_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    JobState state{.round = json_integer(json.at("round")),
                   .attempt = json_integer(json.at("attempt")),
                   .history = json.at("history").get<std::string>(),
                   .run_id = json.value("run_id", std::string()),
                   .leader = json.at("holder").get<std::string>(),
                   .members = json.at("members").get<std::vector<std::string>>()};
    if (json.contains("outcome")) state.outcome = json.at("outcome").get<std::string>();
    const bool in_range = state.round >= 0 && state.attempt >= 0 && (state.run_id.empty() || is_run_id(state.run_id)) &&
                          state.history.size() <= kMostReportBytes &&
                          state.outcome.value_or("").size() <= kMostReportBytes &&
                          state.members.size() <= static_cast<std::size_t>(kMostNodesOfAJob);
    return in_range ? std::optional(std::move(state)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
