#include "rendezvous/coordinator.h"

#include <algorithm>
#include <utility>

namespace lrun {
namespace {

using Kind = LauncherMessage::Kind;

/// Reports of all nodes go to all nodes: those that would make it more than this are left out.
constexpr std::size_t kMostBytesOfReports = kMostBytesFromHolder / 4;
constexpr std::size_t kMostNodesInWords = 16;

std::string counted(int count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

std::string in_words(const JoinRecord& record) {
  return "'" + record.node + "' from " + record.address + " (" + counted(record.workers, "worker") +
         (record.node_rank ? ", node rank " + std::to_string(*record.node_rank) : "") + ")";
}

std::string nodes_in_words(const JoinRecord& record) {
  const std::string most = std::to_string(record.max_nodes);
  return record.min_nodes == record.max_nodes ? most : std::to_string(record.min_nodes) + ":" + most;
}

/// Jobs without a name that came to one endpoint by chance. Nodes of different roles may run different programs.
bool runs_something_else(const JoinRecord& record, const JoinRecord& other) {
  return !record.command_digest.empty() && !other.command_digest.empty() && record.role == other.role &&
         record.command_digest != other.command_digest;
}

std::string another_job(const JoinRecord& record, const JoinRecord& other) {
  const std::string theirs =
      record.program == other.program ? "with other arguments" : "and not '" + record.program + "'";
  return "another job meets here: node '" + other.node + "' runs '" + other.program + "' " + theirs +
         "; another port keeps two jobs apart, the same --rdzv-id on all nodes makes them one";
}

}  // namespace

void Coordinator::received(LauncherId from, const LauncherMessage& message, SteadyTime now) {
  const auto found = launchers_.find(from);
  if (message.kind == Kind::kJoin) {
    if (found == launchers_.end() && message.join) join(from, *message.join, now);
    return;
  }
  if (found == launchers_.end()) return;
  Launcher& launcher = found->second;
  switch (message.kind) {
    case Kind::kStopping:
      // Sent before it heard of the next round: it never says so of a round that it was ready to leave.
      if (message.round == round_ || message.round + 1 == round_) stop(from, message.text);
      break;
    case Kind::kReport:
      if (phase_ != Phase::kRunning || message.round != round_ || launcher.reported) break;
      launcher.reported = true;
      reports_.at(static_cast<std::size_t>(launcher.node_rank)) = message.text;
      end_round_when_reported();
      break;
    case Kind::kReady:
      if (message.round != round_ + 1) break;
      if (phase_ == Phase::kClosed) {
        send(from, lost(who_left_));
        break;
      }
      if (phase_ != Phase::kDeciding) break;
      launcher.ready = true;
      begin_again_when_ready();
      break;
    case Kind::kBye:
      leave(from, now);
      break;
    default:
      break;
  }
}

void Coordinator::join(LauncherId from, const JoinRecord& record, SteadyTime now) {
  // Connected again: its last connection may not be known to be dead yet.
  if (phase_ == Phase::kMeeting) {
    std::erase_if(launchers_, [&](const auto& entry) { return entry.second.record.token == record.token; });
  }
  if (const std::string objection = objection_to(record); !objection.empty()) {
    send(from, {.kind = Kind::kRefused, .text = objection}, true);
    return;
  }
  launchers_[from].record = record;
  last_joined_ = now;
  begin_when_complete(now);
}

/// Why this launcher may not join; empty when it may.
std::string Coordinator::objection_to(const JoinRecord& record) const {
  if (phase_ != Phase::kMeeting) {
    return phase_ == Phase::kClosed ? "the job is over"
                                    : "the job runs already, with " + counted(count(), "node") + ": " + who_is_there();
  }
  if (launchers_.empty()) return {};
  const JoinRecord& first = launchers_.begin()->second.record;
  const std::string of_first = " as '" + first.node + "' says";
  if (record.run_name != first.run_name) {
    return "this is the job '" + first.run_name + "', not '" + record.run_name + "'" + of_first + ": see --rdzv-id";
  }
  if (record.min_nodes != first.min_nodes || record.max_nodes != first.max_nodes) {
    return "the job has " + nodes_in_words(first) + " nodes, not " + nodes_in_words(record) + "," + of_first;
  }
  if (record.settings != first.settings) {
    return "the job has " + first.settings + "; here it is " + record.settings;
  }
  for (const auto& [id, other] : launchers_) {
    if (runs_something_else(record, other.record)) return another_job(record, other.record);
  }
  std::int64_t workers = record.workers;
  for (const auto& [id, other] : launchers_) workers += other.record.workers;
  if (workers > kMostWorkersOfAJob) return "a job has at most " + std::to_string(kMostWorkersOfAJob) + " workers";
  for (const auto& [id, other] : launchers_) {
    if (record.node_rank && other.record.node_rank == record.node_rank) {
      return "node rank " + std::to_string(*record.node_rank) + " is taken by " + in_words(other.record);
    }
  }
  return {};
}

void Coordinator::begin_when_complete(SteadyTime now) {
  if (phase_ != Phase::kMeeting || launchers_.empty() || count() < least()) return;
  if (count() == most() || now >= last_joined_ + times_.last_call) begin(0);
}

void Coordinator::begin(int round) {
  std::vector<JoinRecord> records;
  std::vector<LauncherId> ids;
  for (const auto& [id, launcher] : launchers_) {
    ids.push_back(id);
    records.push_back(launcher.record);
  }
  Membership membership = assign_ranks(records);
  membership.round = round;
  membership.attempt = round;
  phase_ = Phase::kRunning;
  round_ = round;
  stopped_ = false;
  reports_.assign(launchers_.size(), "");
  const std::vector<std::size_t> order = order_nodes(records);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    Launcher& launcher = launchers_.at(ids[order[rank]]);
    launcher.node_rank = static_cast<int>(rank);
    launcher.reported = launcher.ready = false;
    membership.node_rank = launcher.node_rank;
    send(ids[order[rank]], {.kind = Kind::kBegin, .round = round, .membership = membership});
  }
}

/// Also between two rounds: then nobody is to begin the next one.
void Coordinator::stop(LauncherId from, const std::string& reason) {
  if (phase_ == Phase::kMeeting || std::exchange(stopped_, true)) return;
  send_to_all({.kind = Kind::kStop, .round = round_, .text = reason}, from);
}

void Coordinator::end_round_when_reported() {
  if (phase_ != Phase::kRunning) return;
  for (const auto& [id, launcher] : launchers_) {
    if (!launcher.reported) return;
  }
  std::size_t bytes = 0;
  for (std::string& report : reports_) {
    bytes += report.size();
    if (bytes > kMostBytesOfReports) report.clear();
  }
  phase_ = Phase::kDeciding;
  stopped_ = false;
  send_to_all({.kind = Kind::kOver, .round = round_, .payloads = reports_});
}

void Coordinator::begin_again_when_ready() {
  for (const auto& [id, launcher] : launchers_) {
    if (!launcher.ready) return;
  }
  begin(round_ + 1);
}

void Coordinator::left(LauncherId who, const std::string& how, SteadyTime now) {
  const auto found = launchers_.find(who);
  if (found == launchers_.end()) return;
  const std::string node = found->second.record.node;
  launchers_.erase(found);
  if (phase_ == Phase::kMeeting) return begin_when_complete(now);
  if (phase_ != Phase::kClosed) send_to_all({.kind = Kind::kLost, .round = round_, .text = how, .node = node});
  if (phase_ == Phase::kRunning) end_round_when_reported();
  if (launchers_.empty()) phase_ = Phase::kClosed;
}

/// Whoever has reported is not missed in this round, and none can follow: whoever is ready for one is told.
void Coordinator::leave(LauncherId who, SteadyTime now) {
  const bool over = phase_ == Phase::kDeciding || phase_ == Phase::kClosed;
  if (!over && !launchers_.at(who).reported) return left(who, "its launcher has left", now);
  if (phase_ != Phase::kClosed) who_left_ = launchers_.at(who).record.node;
  launchers_.erase(who);
  if (!over && !launchers_.empty()) return end_round_when_reported();
  if (phase_ == Phase::kDeciding) {
    for (const auto& [id, launcher] : launchers_) {
      if (launcher.ready) send(id, lost(who_left_));
    }
  }
  phase_ = Phase::kClosed;
}

LauncherMessage Coordinator::lost(const std::string& node) const {
  return {.kind = Kind::kLost, .round = round_, .text = "its launcher has left", .node = node};
}

void Coordinator::advance(SteadyTime now) {
  if (phase_ != Phase::kMeeting) return;
  begin_when_complete(now);
  if (phase_ != Phase::kMeeting) return;
  if (now >= opened_ + times_.join) {
    return give_up("not enough nodes in " + format_duration(times_.join) + ": " + who_is_there());
  }
  if (now < progress_ + times_.progress) return;
  progress_ = now;
  send_to_all({.kind = Kind::kWaiting, .text = who_is_there()});
}

void Coordinator::give_up(const std::string& why) {
  phase_ = Phase::kClosed;
  for (const auto& [id, launcher] : launchers_) send(id, {.kind = Kind::kRefused, .text = why}, true);
  launchers_.clear();
}

std::optional<SteadyTime> Coordinator::deadline() const {
  if (phase_ != Phase::kMeeting) return std::nullopt;
  SteadyTime next = std::min(opened_ + times_.join, progress_ + times_.progress);
  if (!launchers_.empty() && count() >= least()) next = std::min(next, last_joined_ + times_.last_call);
  return next;
}

std::vector<Coordinator::Send> Coordinator::take_sends() { return std::exchange(sends_, {}); }

std::string Coordinator::who_is_there() const {
  std::string text;
  std::size_t told = 0;
  std::set<int> ranks;
  for (const auto& [id, launcher] : launchers_) {
    if (launcher.record.node_rank) ranks.insert(*launcher.record.node_rank);
    if (told++ < kMostNodesInWords) text += (text.empty() ? "" : ", ") + in_words(launcher.record);
  }
  if (told > kMostNodesInWords) text += " and " + std::to_string(told - kMostNodesInWords) + " more";
  text = launchers_.empty() ? "nobody has joined" : "joined: " + text;
  if (phase_ != Phase::kMeeting || launchers_.empty() || count() >= most()) return text;
  text += "; missing: " + std::to_string(most() - count()) + " of " + counted(most(), "node");
  if (static_cast<int>(ranks.size()) != count() || ranks.empty()) return text;
  std::string missing;
  told = 0;
  for (int rank = 0; rank < most() && told < kMostNodesInWords; ++rank) {
    if (ranks.count(rank) != 0) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    ++told;
  }
  return text + " (node rank " + missing + ")";
}

void Coordinator::send(LauncherId to, LauncherMessage message, bool last) {
  sends_.push_back({to, std::move(message), last});
}

void Coordinator::send_to_all(const LauncherMessage& message, LauncherId except) {
  for (const auto& [id, launcher] : launchers_) {
    if (id != except) send(id, message);
  }
}

}  // namespace lrun
