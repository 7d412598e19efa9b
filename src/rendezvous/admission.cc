#include "rendezvous/admission.h"

#include <cstdint>

namespace lrun {
namespace {

std::string counted(int count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

constexpr const char* kNoName = "none";  // torchrun's word for it

bool has_name(const JoinRecord& record) { return !record.run_name.empty() && record.run_name != kNoName; }

/// Jobs that came to one meeting by chance. Nodes of different roles may run different programs, and those of a job
/// with a name the same one with arguments of their own.
bool runs_something_else(const JoinRecord& record, const JoinRecord& other) {
  if (record.command_digest.empty() || other.command_digest.empty() || record.role != other.role) return false;
  return has_name(record) ? record.program != other.program : record.command_digest != other.command_digest;
}

constexpr const char* kApartHint =
    "another port in '--rdzv-endpoint' keeps two jobs apart, the same '--rdzv-id' on all nodes makes them one";
constexpr const char* kCommandsHint =
    "another port in '--rdzv-endpoint' keeps two jobs apart; nodes of one job that run different programs have "
    "different "
    "'--role's, and with the same '--rdzv-id' on all nodes each may have arguments of its own";
constexpr const char* kProgramsHint =
    "another '--rdzv-id' where jobs meet through etcd, else another port in '--rdzv-endpoint', keeps two jobs apart; "
    "nodes of one job that run different programs have different '--role's";

Objection another_job(const JoinRecord& record, const JoinRecord& other) {
  const bool named = has_name(record);
  const std::string theirs = "node '" + other.node + "' runs '" + other.program + "' ";
  return {(named ? "another job of the name '" + record.run_name + "' meets here: " : "another job meets here: ") +
              theirs +
              (record.program == other.program ? "with other arguments than node '" + record.node + "'"
                                               : "and node '" + record.node + "' '" + record.program + "'"),
          named ? kProgramsHint : kCommandsHint};
}

Objection another_name(const JoinRecord& record, const JoinRecord& other) {
  const auto quoted = [](const std::string& name) { return name.empty() ? "one without a name" : "'" + name + "'"; };
  return {"another job meets here: it is " + quoted(other.run_name) + ", as node '" + other.node + "' says, and not " +
              quoted(record.run_name),
          kApartHint};
}

}  // namespace

std::string in_words(const JoinRecord& record) {
  const std::string rank = record.node_rank ? std::to_string(*record.node_rank) : "";
  if (record.of_rank) return "'" + record.node + "' from " + record.address + " (rank " + rank + ")";
  return "'" + record.node + "' from " + record.address + " (" + counted(record.workers, "worker") +
         (rank.empty() ? "" : ", node rank " + rank) + ")";
}

std::string name_of(const JoinRecord& record) {
  return record.of_rank && record.node_rank ? record.node + " (rank " + std::to_string(*record.node_rank) + ")"
                                            : record.node;
}

std::string unit_of(bool of_ranks, int count) {
  return std::string(of_ranks ? "rank" : "node") + (count == 1 ? "" : "s");
}

std::string nodes_in_words(int least, int most) {
  const std::string text = std::to_string(most);
  return least == most ? text : std::to_string(least) + ":" + text;
}

std::optional<Objection> objection_to(const JoinRecord& record, const std::vector<const JoinRecord*>& joined,
                                      bool runs) {
  if (joined.empty()) return std::nullopt;
  const JoinRecord& first = *joined.front();
  if (record.run_name != first.run_name) return another_name(record, first);
  if (record.min_nodes != first.min_nodes || record.max_nodes != first.max_nodes) {
    return Objection{"the job has " + nodes_in_words(first.min_nodes, first.max_nodes) + " nodes, not " +
                     nodes_in_words(record.min_nodes, record.max_nodes) + ", as '" + first.node + "' says"};
  }
  if (record.settings != first.settings) {
    return Objection{"the job has " + first.settings + "; here it is " + record.settings};
  }
  for (const JoinRecord* other : joined) {
    if (runs_something_else(record, *other)) return another_job(record, *other);
  }
  if (runs) return std::nullopt;  // a place may become free
  std::int64_t workers = record.workers;
  for (const JoinRecord* other : joined) workers += other->workers;
  if (workers > kMostWorkersOfAJob) {
    return Objection{"a job has at most " + std::to_string(kMostWorkersOfAJob) + " workers"};
  }
  for (const JoinRecord* other : joined) {
    if (record.node_rank && other->node_rank == record.node_rank) {
      return Objection{(record.of_rank ? "rank " : "node rank ") + std::to_string(*record.node_rank) + " is taken by " +
                       in_words(*other)};
    }
  }
  return std::nullopt;
}

}  // namespace lrun
