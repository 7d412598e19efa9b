#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/membership.h"

namespace lrun::launcher {

/// Who may go on with a job of which the launcher that held the meeting is lost and no etcd chooses another. Two groups
/// of its members that do not hear each other must never both go on. All of it is pure, and values.
///
/// The death of the holder is proved when its connection was closed by its host, which answers and on which nobody
/// listens there any more. Then it cannot go on, and half of the others is enough where the first in line is among
/// them. A holder that is silent may go on with half of the members, itself included: so the others need more than
/// half. However members are divided, at most one of their groups is large enough.
struct Ballot {
  int members = 0;             ///< of the round, the lost holder included
  int leader = 0;              ///< its node rank
  bool proved = false;         ///< its death is
  bool first_in_line = false;  ///< who would hold the meeting now comes first among the others

  bool operator==(const Ballot&) const = default;

  /// \param votes  members that are back, the one that would hold the meeting included.
  [[nodiscard]] bool carried_by(int votes) const;
};

/// '1 of 2 nodes is no majority, and a job that is cut off must not go on twice'; of two, what to type
/// to have it otherwise.
std::string no_majority_text(int nodes, int of);

/// For the launcher that holds a meeting: whether members that it hears no more could go on without it. A round counts
/// until all members of a later one know of that: before, some could go on from the earlier one.
class Majority {
 public:
  void round_began(int round, int members) { rounds_.push_back({round, members, 0}); }
  /// All members of the last round know of it.
  void last_round_is_known();
  /// One is lost that did not say goodbye and may still run. \param since  the first of the rounds in which it was
  void lost(int since);
  /// Enough are left; else this launcher must stop.
  [[nodiscard]] bool stands() const;

 private:
  struct Round {
    int number = 0;
    int members = 0;
    int unheard = 0;
  };
  std::vector<Round> rounds_;
};

/// What a member does, step by step, when the launcher that holds the meeting is lost: makes sure whether it is dead,
/// then turns to the others in the order of their ranks, until one takes it in or it is its own turn to hold the
/// meeting. Whoever joins another has cast its vote, and goes on to the next only when that one's death is proved.
class SuccessorSearch {
 public:
  struct Step {
    enum class Kind {
      kProbe,   ///< does anybody listen where the meeting was held? probed() follows
      kJoin,    ///< the meeting of `other`: joined(), or out_of_reach()
      kLead,    ///< the meeting, with `ballot`
      kGiveUp,  ///< `why`
    };
    Kind kind = Kind::kGiveUp;
    Successor other = {};
    Ballot ballot = {};
    std::string why = {};

    bool operator==(const Step&) const = default;
  };

  /// \param round  the last one that all of its members know of
  explicit SuccessorSearch(const Membership& round);

  /// \param closed  its host has closed the connection; else it is silent.
  Step leader_lost(bool closed);
  /// \param refused  its host lives, and nobody listens there.
  Step probed(bool refused);
  Step out_of_reach() { return next(); }
  void joined() { voted_ = true; }
  /// The one that we had joined is lost before it has begun a round.
  Step successor_lost(bool closed);

  [[nodiscard]] bool has_voted() const { return voted_; }

 private:
  Step next();

  std::vector<Successor> line_;
  int nodes_ = 0;
  int holder_ = 0;
  int self_ = 0;
  std::size_t turned_to_ = 0;  ///< so many of the line
  bool proved_ = false;
  bool voted_ = false;  ///< for candidate_
};

}  // namespace lrun::launcher
