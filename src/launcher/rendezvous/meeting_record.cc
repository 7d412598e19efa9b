#include "rendezvous/meeting_record.h"

#include <nlohmann/json.hpp>

namespace lrun::launcher {

using Json = nlohmann::json;

/// Holder and state are what etcd is given under keys of their own.
std::string to_json(const MeetingRecord& record) {
  Json json = {{"beat", record.beat}};
  if (record.holder) json["holder"] = Json::parse(to_json(*record.holder));
  if (record.state) json["state"] = Json::parse(json_for_etcd(*record.state));
  return json.dump();
}

std::optional<MeetingRecord> meeting_record_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const Json& beat = json.at("beat");
    if (!beat.is_number_integer() || beat.get<std::int64_t>() < 0) return std::nullopt;
    MeetingRecord record{.beat = beat.get<std::int64_t>()};
    if (json.contains("holder")) {
      record.holder = holder_record_from_json(json.at("holder").dump());
      if (!record.holder) return std::nullopt;
    }
    if (json.contains("state")) {
      record.state = job_state_from_json(json.at("state").dump());
      if (!record.state) return std::nullopt;
    }
    return record;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
