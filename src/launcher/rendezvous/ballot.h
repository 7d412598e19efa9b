#pragma once

#include <string>
#include <vector>

namespace lrun::launcher {

/// The vote of the members of a round for a new leader, where no etcd chooses one. Two groups of members that do not
/// hear each other must never both go on. Pure; a value.
///
/// The death of the old leader is proved when its host has closed the connection and refuses a new one at its port.
/// Then it has no vote: the first successor needs half of the others, any other candidate more than half. A leader that
/// is only silent may go on with half of the members, itself included: then a candidate needs more than half of all.
/// However the members are divided, at most one group is large enough.
struct Ballot {
  int members = 0;             ///< of the round, the lost leader included
  int leader = 0;              ///< node rank of the lost one
  bool proved = false;         ///< its death is
  bool first_in_line = false;  ///< the candidate comes first among the others

  bool operator==(const Ballot&) const = default;

  /// \param votes  members that are back, the candidate included
  [[nodiscard]] bool carried_by(int votes) const;
};

/// The leader's own check of its majority: could the members that it no longer hears elect another leader? A round
/// counts until all members of a later one know that it began: until then some may fail over from the earlier one.
/// Pure; a value.
class Majority {
 public:
  void round_began(int round, int members) { rounds_.push_back({round, members, 0}); }
  /// All members of the last round know of it.
  void last_round_is_known();
  /// A member is lost that did not announce it, and may still run.
  /// \param since  the first of the rounds in which it was
  void lost(int since);
  /// Enough members are left; else this leader must stop.
  [[nodiscard]] bool has_quorum() const;

 private:
  struct MembersOfRound {
    int number = 0;
    int members = 0;
    int unheard = 0;
  };
  std::vector<MembersOfRound> rounds_;
};

/// '1 of 2 nodes is not a majority, and a job that is cut off must not run twice'; for two nodes also a hint.
std::string no_majority_text(int nodes, int of);

}  // namespace lrun::launcher
