#include "rendezvous/admission.h"

#include <algorithm>
#include <cstdint>

namespace lrun::launcher {
namespace {

/// Unknown launchers may come as often as they like.
constexpr std::size_t kMostNotes = 64;
constexpr std::size_t kMostNotesShown = 3;
constexpr const char* kNoName = "none";  // torchrun's word for it

/// Jobs that came to one meeting by chance. Nodes of different roles may run different programs, and those of a job
/// with a name the same one with arguments of their own.
bool runs_something_else(const JoinRecord& record, const JoinRecord& other) {
  if (record.command_digest.empty() || other.command_digest.empty() || record.role != other.role) return false;
  return has_name(record) ? record.program != other.program : record.command_digest != other.command_digest;
}

/// What of a list that only the first has: "'--max-restarts 3'".
std::string only_in(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  std::string text;
  for (const std::string& part : one) {
    if (std::find(other.begin(), other.end(), part) != other.end()) continue;
    text += (text.empty() ? "'" : ", '") + part + "'";
  }
  return text.empty() ? "without that" : text;
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
  const std::vector<std::string> ours = parts_of(record.settings);
  const std::vector<std::string> theirs = parts_of(first.settings);
  return {
      "the job has " + only_in(theirs, ours) + ", as '" + first.node + "' says; here it is " + only_in(ours, theirs),
      "give every node the same"};
}

constexpr const char* kApartHint =
    "another port in '--rdzv-endpoint' keeps two jobs apart, the same '--rdzv-id' on all nodes makes them one";
constexpr const char* kCommandsHint =
    "another port in '--rdzv-endpoint' keeps two jobs apart; nodes of one job that run different programs have "
    "different '--role's, and with the same '--rdzv-id' on all nodes each may have arguments of its own";
constexpr const char* kProgramsHint =
    "another '--rdzv-id' where jobs meet through etcd, else another port in '--rdzv-endpoint', keeps two jobs apart; "
    "nodes of one job that run different programs have different '--role's";

Rejection another_name(const JoinRecord& record, const JoinRecord& other) {
  const auto quoted = [](const std::string& name) { return name.empty() ? "one without a name" : "'" + name + "'"; };
  return {"another job meets here: it is " + quoted(other.run_name) + ", as node '" + other.node + "' says, and not " +
              quoted(record.run_name),
          kApartHint};
}

}  // namespace

bool has_name(const JoinRecord& record) { return !record.run_name.empty() && record.run_name != kNoName; }

Rejection another_job(const JoinRecord& record, const JoinRecord& other) {
  const bool named = has_name(record);
  return {(named ? "another job of the name '" + record.run_name + "' meets here: " : "another job meets here: ") +
              difference_of_commands(record, other),
          named ? kProgramsHint : kCommandsHint};
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
    return Rejection{"the job has " + nodes_text(first.min_nodes, first.max_nodes) + " nodes, not " +
                         nodes_text(record.min_nodes, record.max_nodes) + ", as '" + first.node + "' says",
                     record.of_rank ? "" : "give every node the same '--num_nodes' ('--nnodes')"};
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
    return Rejection{"a job has at most " + std::to_string(kMostWorkersOfAJob) + " workers"};
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
                     ": it is let in again after " + format_duration(wait)};
  }
  return rejection_of(record, joined, runs);
}

std::string Admission::note_departure(const JoinRecord& record, SteadyTime now) {
  backoff_.note(record, now);
  if (backoff_.wait(record, now) == Duration::zero()) return {};
  return "; it has left the job " + RejoinBackoff::limit_text() + " and is not let in for a while";
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
  return difference + ": two jobs that are to be apart have different '--rdzv-id's";
}

}  // namespace lrun::launcher
