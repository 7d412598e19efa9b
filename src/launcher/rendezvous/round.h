#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/membership.h"
#include "rendezvous/message.h"

namespace lrun::launcher {

/// Makes one text of reports, and of texts that it made before, in any order: at most kMostReportBytes, and always the
/// same for the same reports. An empty report stands for those that are missing.
using MergeReports = std::function<std::string(const std::vector<std::string>& reports)>;

/// One round of a job, from its begin until the next one begins: its members, what they report, and which of them are
/// ready for the next round. A Coordinator makes a new one for each round. Pure; a value.
class Round {
 public:
  struct Member {
    int node_rank = 0;
    int since = 0;          ///< the first of the rounds in which it was without a break
    bool reported = false;  ///< none of its workers is left
    bool ready = false;     ///< for the next round
    bool knows = false;     ///< that this round has begun

    bool operator==(const Member&) const = default;
  };

  /// A round that begins.
  /// \param by_rank     its members in the order of their node ranks
  /// \param before      the round before it; null: this is the first one
  /// \param known_to_all     no member can go on from an earlier round
  /// \param successors  of its members, those that may become leader next, by node rank
  Round(int number, const std::vector<ConnectionId>& by_rank, const Round* before, bool known_to_all,
        std::vector<Successor> successors);
  /// A round that was lost with its leader. Its members come back one by one, to be ready for the next.
  static Round lost(int number);

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int size() const { return static_cast<int>(members_.size()); }  ///< members that are still there
  [[nodiscard]] int began_with() const { return began_with_; }
  [[nodiscard]] bool has(ConnectionId id) const { return members_.count(id) != 0; }
  [[nodiscard]] const Member& member(ConnectionId id) const { return members_.at(id); }
  [[nodiscard]] std::vector<ConnectionId> members(ConnectionId except = 0) const;  ///< in the order in which they came
  [[nodiscard]] const std::vector<Successor>& successors() const { return successors_; }

  /// A member of a lost round is back. \param round  the last one that it knows of, which may be a later one
  void readmit(ConnectionId id, int round);
  /// A member is gone. Empty: it was none.
  std::optional<Member> remove(ConnectionId id);

  /// Some member wants the workers to stop, or the job is over and no round follows. \return true: it is the first one.
  bool stop();
  [[nodiscard]] bool is_stopped() const { return stopped_; }
  /// Nodes came or went: the round stops, and another one follows.
  void end_early() { ends_early_ = true; }
  [[nodiscard]] bool ends_early() const { return ends_early_; }
  /// A member is done, or was.
  [[nodiscard]] bool some_reported() const { return some_reported_; }
  /// Newcomers may end this round early: it runs, and none of its members is done.
  [[nodiscard]] bool can_be_interrupted() const { return !stopped_ && !ends_early_ && !some_reported_; }

  void report(ConnectionId id, std::string text, const MergeReports& merge);
  [[nodiscard]] bool all_reported() const { return reported_ == size(); }
  /// All have reported. \return the text that is made of their reports
  std::string finish(const MergeReports& merge);

  /// A member is ready for the next round. \return false: it was before
  bool make_ready(ConnectionId id);
  [[nodiscard]] bool all_ready() const { return ready_ == size(); }
  /// Of a finished round: some member was ready for another one.
  [[nodiscard]] bool goes_on() const { return goes_on_; }

  /// No member can go on from an earlier round: all know of this one.
  [[nodiscard]] bool is_known_to_all() const { return known_to_all_; }
  /// A member knows that this round has begun. \return true: now all of them do, and the round is known to all.
  bool acknowledge(ConnectionId id);

 private:
  Round() = default;

  int number_ = 0;
  int began_with_ = 0;
  std::map<ConnectionId, Member> members_;
  std::vector<Successor> successors_;
  bool known_to_all_ = false;
  int acknowledged_ = 0;  ///< also by members that are gone
  bool stopped_ = false;
  bool ends_early_ = false;
  bool some_reported_ = false;
  bool goes_on_ = false;
  int reported_ = 0;                  ///< of the members that are there
  int ready_ = 0;                     ///< the same
  std::vector<std::string> reports_;  ///< or what was made of them
  std::size_t report_bytes_ = 0;
  int missing_reports_ = 0;
};

}  // namespace lrun::launcher
