#include "rendezvous/leader_record.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/numeric_address.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string to_json(const LeaderRecord& record) {
  const Json json = {
      {"token", record.token}, {"node", record.node}, {"address", record.address}, {"port", record.port}};
  return json_text(json);
}

std::optional<LeaderRecord> leader_record_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    const int port = json_integer(json.at("port"));
    if (port <= 0 || port > kMostPort) return std::nullopt;
    return LeaderRecord{json.at("token").get<std::string>(), json.at("node").get<std::string>(),
                        json.at("address").get<std::string>(), static_cast<std::uint16_t>(port)};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lrun::launcher
