#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rendezvous/ballot.h"
#include "rendezvous/membership.h"

namespace lrun::launcher {

/// The failover as a member of a round sees it, step by step: it makes sure whether the lost leader is dead, then turns
/// to the others in the order of their ranks, until one takes it in or it is its own turn to lead. Joining another is
/// the member's vote. It goes on to the next only when the death of the one that got the vote is proved. Pure; a value.
class SuccessorSearch {
 public:
  struct Step {
    enum class Kind {
      kProbe,   ///< does a process listen at the lost leader's port? probed() follows
      kJoin,    ///< the rendezvous of `other`: joined() or out_of_reach() follows
      kLead,    ///< lead the job, once `ballot` is carried
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
  /// \param refused  its host lives, and refused the connection.
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
  int leader_ = 0;
  int self_ = 0;
  std::size_t tried_ = 0;  ///< so many of line_
  bool proved_ = false;
  bool voted_ = false;  ///< for the last one that was tried
};

}  // namespace lrun::launcher
