// In: a record of this node, or JSON from another machine. Out: JSON, or a record whose fields are in range; and texts
// about a node. Called by LauncherMessage, and wherever a node is named.
#include "rendezvous/join_record.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/nearest.h"
#include "base/numeric_address.h"
#include "plan/run_id.h"

namespace lrun::launcher {
namespace {

using Json = nlohmann::json;

// The leader keeps a record of each launcher: none may be large.
constexpr std::size_t kMostTextBytes = 1024;
constexpr std::size_t kMostFailureBytes = 8192;

bool is_in_range(const JoinRecord& record) {
  for (const std::string* text : {&record.token, &record.run_name, &record.run_id, &record.node, &record.role,
                                  &record.settings, &record.program, &record.command_digest, &record.cannot_start}) {
    if (text->size() > kMostTextBytes) return false;
  }
  if (record.report.size() > kMostFailureBytes) return false;
  const bool addresses = is_numeric_address(record.address) && is_numeric_address(record.leader_address);
  const bool rank = !record.node_rank || is_within(*record.node_rank, 0, kMostNodesOfAJob - 1);
  const bool nodes =
      record.min_nodes >= 1 && record.min_nodes <= record.max_nodes && record.max_nodes <= kMostNodesOfAJob;
  return addresses && rank && nodes && is_run_id(record.run_id) && !record.token.empty() &&
         is_within(record.workers, 1, kMostWorkersOfANode) && is_within(record.store_port, 1, kMostPort) &&
         is_within(record.standby_port, 0, kMostPort) && is_within(record.copy_port, 0, kMostPort) &&
         record.copy_key.size() <= kMostTextBytes;
}

}  // namespace

std::string to_json(const JoinRecord& record) {
  Json json = {{"token", record.token},
               {"run_name", record.run_name},
               {"run_id", record.run_id},
               {"node", record.node},
               {"address", record.address},
               {"meeting_address", record.leader_address},
               {"workers", record.workers},
               {"node_rank", record.node_rank ? Json(*record.node_rank) : Json()},
               {"role", record.role},
               {"store_port", record.store_port},
               {"of_rank", record.of_rank},
               {"meeting_port", record.standby_port},
               {"min_nodes", record.min_nodes},
               {"max_nodes", record.max_nodes},
               {"settings", record.settings},
               {"program", record.program},
               {"command_digest", record.command_digest}};
  // Fields that have their default on most nodes are left out there.
  if (record.copy_port != 0) json["copy_port"] = record.copy_port;
  if (!record.copy_key.empty()) json["copy_key"] = record.copy_key;
  if (!record.cannot_start.empty()) json["cannot_start"] = record.cannot_start;
  if (!record.report.empty()) json["report"] = record.report;
  return json_text(json);
}

std::optional<JoinRecord> join_record_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    JoinRecord record;
    record.token = json.at("token").get<std::string>();
    record.run_name = json.at("run_name").get<std::string>();
    record.run_id = json.at("run_id").get<std::string>();
    record.node = json.at("node").get<std::string>();
    record.address = json.at("address").get<std::string>();
    record.leader_address = json.at("meeting_address").get<std::string>();
    record.workers = json_integer(json.at("workers"));
    if (!json.at("node_rank").is_null()) record.node_rank = json_integer(json.at("node_rank"));
    record.role = json.at("role").get<std::string>();
    record.store_port = json_integer(json.at("store_port"));
    record.of_rank = json.at("of_rank").get<bool>();
    record.standby_port = json_integer(json.at("meeting_port"));
    record.min_nodes = json_integer(json.at("min_nodes"));
    record.max_nodes = json_integer(json.at("max_nodes"));
    record.settings = json.at("settings").get<std::string>();
    record.program = json.at("program").get<std::string>();
    record.command_digest = json.at("command_digest").get<std::string>();
    if (json.contains("copy_port")) record.copy_port = json_integer(json.at("copy_port"));
    record.copy_key = json.value("copy_key", std::string());
    record.cannot_start = json.value("cannot_start", std::string());
    record.report = json.value("report", std::string());
    return is_in_range(record) ? std::optional(std::move(record)) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string describe(const JoinRecord& record) {
  const std::string rank = record.node_rank ? std::to_string(*record.node_rank) : "";
  const std::string from = is_loopback_address(record.address) ? std::string() : " from " + record.address;
  if (record.of_rank) return "'" + record.node + "'" + from + " (rank " + rank + ")";
  return "'" + record.node + "'" + from + " (" + counted(record.workers, "worker") +
         (rank.empty() ? "" : ", node rank " + rank) + ")";
}

std::string name_of(const JoinRecord& record) {
  return record.of_rank && record.node_rank ? record.node + " (rank " + std::to_string(*record.node_rank) + ")"
                                            : record.node;
}

std::string unit_of(bool of_ranks, int count) {
  return std::string(of_ranks ? "rank" : "node") + (count == 1 ? "" : "s");
}

std::string nodes_text(int least, int most) {
  const std::string text = std::to_string(most);
  return least == most ? text : std::to_string(least) + ":" + text;
}

bool is_loopback_address(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace lrun::launcher
