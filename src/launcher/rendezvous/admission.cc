// In: the record of a launcher that wants to join, and those of the launchers that are there. Out: why it may not, with
// what to type. Called by the Coordinator, and by launchers that compare what they run.
#include "rendezvous/admission.h"

#include <algorithm>
#include <cstdint>

namespace lrun::launcher {
namespace {

/// Unknown launchers may come as often as they like.
constexpr std::size_t kMostNotes = 64;
constexpr std::size_t kMostNotesShown = 3;
constexpr const char* kNoName = "none";  // torchrun's word for it

/// Two jobs use one rendezvous by chance. Nodes of one job may run different programs if their roles differ, and in a
/// job with a name each node may have arguments of its own.
bool runs_something_else(const JoinRecord& record, const JoinRecord& other) {
  if (record.command_digest.empty() || other.command_digest.empty() || record.role != other.role) return false;
  return has_name(record) ? record.program != other.program : record.command_digest != other.command_digest;
}

/// The parts of a list that the other one lacks: "'--max-restarts 3'"; empty: there are none.
std::string only_in(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  std::string text;
  for (const std::string& part : one) {
    if (std::find(other.begin(), other.end(), part) != other.end()) continue;
    text += (text.empty() ? "'" : ", '") + part + "'";
  }
  return text;
}

std::vector<std::string> parts_of(const std::string& settings) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < settings.size();) {
    const std::size_t end = std::min(settings.find(", ", begin), settings.size());
    parts.push_back(settings.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

Rejection other_settings(const JoinRecord& record, const JoinRecord& first) {
  const std::string ours = only_in(parts_of(record.settings), parts_of(first.settings));
  const std::string theirs = only_in(parts_of(first.settings), parts_of(record.settings));
  const std::string one = "node '" + first.node + "'";
  const std::string other = "node '" + record.node + "'";
  std::string why = one + " has " + theirs + ", and " + other + " has " + ours;
  if (theirs.empty()) why = other + " has " + ours + ", and " + one + " does not";
  if (ours.empty()) why = one + " has " + theirs + ", and " + other + " does not";
  return {why, "give every node the same options"};
}

constexpr const char* kApartHint =
    "for two jobs, use a different port in '--rdzv-endpoint'; for one job, give all nodes the same '--rdzv-id'";
constexpr const char* kProgramsHint =
    "start the same program on every node, or give others a '--role'; a second job needs another '--rdzv-endpoint'";
constexpr const char* kArgumentsHint =
    "give it the same arguments on every node, or all nodes one '--rdzv-id'; a second job needs another "
    "'--rdzv-endpoint'";

Rejection another_name(const JoinRecord& record, const JoinRecord& other) {
  const auto id_of = [](const JoinRecord& node) {
    return node.run_name.empty() ? "no '--rdzv-id'" : "'--rdzv-id " + node.run_name + "'";
  };
  return {"another job uses this rendezvous: node '" + other.node + "' has " + id_of(other) + ", and node '" +
              record.node + "' has " + id_of(record),
          kApartHint};
}

}  // namespace

bool has_name(const JoinRecord& record) { return !record.run_name.empty() && record.run_name != kNoName; }

Rejection another_job(const JoinRecord& record, const JoinRecord& other) {
  const bool named = has_name(record);
  std::string hint = named || record.program != other.program ? kProgramsHint : kArgumentsHint;
  if (named) hint += ", with etcd another '--rdzv-id'";
  return {(named ? "another job named '" + record.run_name + "' uses this rendezvous: "
                 : "another job uses this rendezvous: ") +
              difference_of_commands(record, other),
          hint};
}

std::string difference_of_commands(const JoinRecord& record, const JoinRecord& other) {
  if (record.program.empty() || other.program.empty() || record.role != other.role) return {};
  const std::string theirs = "node '" + other.node + "' runs '" + other.program + "' ";
  if (record.program != other.program) return theirs + "and node '" + record.node + "' '" + record.program + "'";
  if (record.command_digest == other.command_digest) return {};
  return theirs + "with other arguments than node '" + record.node + "'";
}

Rejection rank_is_taken(const JoinRecord& record, const JoinRecord& by) {
  return {(record.of_rank ? "rank " : "node rank ") + std::to_string(record.node_rank.value_or(0)) + " is taken by " +
              describe(by),
          record.of_rank ? "" : "give each node a '--node-rank' of its own, or none"};
}

std::optional<Rejection> rejection_of(const JoinRecord& record, const std::vector<const JoinRecord*>& joined,
                                      bool runs) {
  if (joined.empty()) return std::nullopt;
  const JoinRecord& first = *joined.front();
  if (record.run_name != first.run_name) return another_name(record, first);
  if (record.min_nodes != first.min_nodes || record.max_nodes != first.max_nodes) {
    return Rejection{"node '" + first.node + "' expects a job of " + nodes_text(first.min_nodes, first.max_nodes) +
                         " nodes, and node '" + record.node + "' one of " +
                         nodes_text(record.min_nodes, record.max_nodes),
                     record.of_rank ? "" : "give every node the same '--num-nodes' ('--nnodes')"};
  }
  if (record.settings != first.settings) {
    return other_settings(record, first);
  }
  for (const JoinRecord* other : joined) {
    if (runs_something_else(record, *other)) return another_job(record, *other);
  }
  if (runs) return std::nullopt;  // a place may become free
  std::int64_t workers = record.workers;
  for (const JoinRecord* other : joined) workers += other->workers;
  if (workers > kMostWorkersOfAJob) {
    return Rejection{"a job can have at most " + std::to_string(kMostWorkersOfAJob) + " workers"};
  }
  for (const JoinRecord* other : joined) {
    if (record.node_rank && other->node_rank == record.node_rank) {
      return rank_is_taken(record, *other);
    }
  }
  return std::nullopt;
}

std::optional<Rejection> Admission::check(const JoinRecord& record, const std::vector<const JoinRecord*>& joined,
                                          bool runs, SteadyTime now) const {
  if (const Duration wait = backoff_.wait(record, now); wait > Duration::zero()) {
    return Rejection{"node " + record.node + " has left the job " + RejoinBackoff::limit_text() +
                     ": it may rejoin in " + format_duration(wait)};
  }
  return rejection_of(record, joined, runs);
}

std::string Admission::note_departure(const JoinRecord& record, SteadyTime now) {
  backoff_.note(record, now);
  if (backoff_.wait(record, now) == Duration::zero()) return {};
  return "; it has left the job " + RejoinBackoff::limit_text() + " and may not rejoin for a while";
}

bool Admission::note(const std::string& line) {
  if (notes_.size() == kMostNotes || std::find(notes_.begin(), notes_.end(), line) != notes_.end()) return false;
  notes_.push_back(line);
  return true;
}

std::string Admission::notes_text() const {
  std::string text;
  for (std::size_t i = notes_.size() - std::min(notes_.size(), kMostNotesShown); i < notes_.size(); ++i) {
    text += "; " + notes_[i];
  }
  return text;
}

std::string Admission::compare_commands(const JoinRecord& record, const JoinRecord& other) {
  if (has_warned_of_commands_) return {};
  const std::string difference = difference_of_commands(record, other);
  if (difference.empty()) return {};
  has_warned_of_commands_ = true;
  return difference + ": if these are two jobs, give them different '--rdzv-id's";
}

}  // namespace lrun::launcher
