#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "rendezvous/join_record.h"
#include "rendezvous/round.h"

namespace lrun::launcher {

/// The launchers that have joined a job: members of its round, and newcomers, of which some are spares. Pure; a value.
class Roster {
 public:
  struct Launcher {
    JoinRecord record;
    SteadyTime came = {};               ///< when it joined
    std::vector<FileOwner> keeps = {};  ///< whose files in memory it has copies of, as it said when it was ready last
    bool busy = false;  ///< its workers of an earlier round are being stopped: it waits for no round yet

    bool operator==(const Launcher&) const = default;
  };

  /// The last connection of this launcher: an earlier one must have been removed.
  void add(ConnectionId id, Launcher launcher);
  Launcher remove(ConnectionId id);
  void clear();

  [[nodiscard]] bool empty() const { return launchers_.empty(); }
  [[nodiscard]] int size() const { return static_cast<int>(launchers_.size()); }
  [[nodiscard]] bool has(ConnectionId id) const { return launchers_.count(id) != 0; }
  [[nodiscard]] const Launcher& at(ConnectionId id) const { return launchers_.at(id); }
  [[nodiscard]] Launcher& at(ConnectionId id) { return launchers_.at(id); }
  [[nodiscard]] const std::map<ConnectionId, Launcher>& launchers() const { return launchers_; }
  /// The launcher with this token. Empty: it is not there.
  [[nodiscard]] std::optional<ConnectionId> find(const std::string& token) const;
  [[nodiscard]] std::vector<ConnectionId> ids() const;
  /// Those that are not in `round`; all where it is null.
  [[nodiscard]] std::vector<ConnectionId> newcomers(const Round* round) const;

  /// How many nodes the job may have, by the record of its first launcher; 1 where no launcher is there.
  [[nodiscard]] int least() const { return empty() ? 1 : launchers_.begin()->second.record.min_nodes; }
  [[nodiscard]] int most() const { return empty() ? 1 : launchers_.begin()->second.record.max_nodes; }
  /// Each rank of the job has a launcher.
  [[nodiscard]] bool is_of_ranks() const { return !empty() && launchers_.begin()->second.record.of_rank; }

  /// The members of the next round: those of `round` (null: there was none) that are still there, and as many newcomers
  /// as there is a place for.
  [[nodiscard]] std::vector<ConnectionId> next_members(const Round* round) const;
  /// The next round would be larger than `round`.
  [[nodiscard]] bool can_grow(const Round& round) const;
  /// The node that takes the place of the one that was lost last, and of no other; empty: none does.
  [[nodiscard]] std::string substitute(const Round& round) const;
  /// Names of those in `ids` that are not in `round`: 'b, c'.
  [[nodiscard]] std::string newcomers_text(const std::vector<ConnectionId>& ids, const Round& round) const;

  /// 'joined: 'a' from 10.0.0.1 (2 workers), 'b' from 10.0.0.2 (2 workers)'.
  [[nodiscard]] std::string joined_text() const;
  /// '; missing: 1 of 2 nodes (node rank 1 on b)'; empty: enough are there.
  /// \param spares  nodes beyond those of the job that are to be there, too
  /// \param hosts   by node rank, as far as they are known
  [[nodiscard]] std::string missing_text(int spares, const std::vector<std::string>& hosts) const;

 private:
  std::map<ConnectionId, Launcher> launchers_;
  std::unordered_map<std::string, ConnectionId> ids_;  ///< by token
};

}  // namespace lrun::launcher
