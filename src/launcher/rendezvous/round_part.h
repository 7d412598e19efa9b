#pragma once

#include <optional>
#include <string>

#include "rendezvous/clock_offset.h"
#include "rendezvous/membership.h"
#include "rendezvous/message.h"

namespace lrun::launcher {

/// The part of this launcher in the rounds of its job, which a leader has to know, also the next one. A value.
struct RoundPart {
  std::optional<Membership> membership = {};  ///< of the last round in which it was; empty: none
  bool known_to_all = false;               ///< all members of that round know that it has begun, and this one may vote
  std::optional<std::string> report = {};  ///< of a round that is not over yet
  std::optional<LauncherMessage> ready = {};   ///< for a round that has not begun
  bool is_spare = false;                       ///< of a job that runs; it was in no round yet
  std::optional<ClockOffset> lost_clock = {};  ///< the leader is lost, and no round has begun since: its clock

  [[nodiscard]] bool has_begun() const { return membership.has_value(); }
  [[nodiscard]] int round() const { return membership ? membership->round : 0; }
  [[nodiscard]] bool is_leaderless() const { return lost_clock.has_value(); }

  /// The members of the round can go on when its leader is lost. Not from a round of which some do not know yet: they
  /// could go on from the one before, without this launcher.
  [[nodiscard]] bool can_fail_over() const { return membership && known_to_all && membership->leader; }

  /// \param message  kBegin
  void begin(const LauncherMessage& message) {
    membership = message.membership;
    known_to_all = message.known_to_all;
    report.reset();
    ready.reset();
    is_spare = false;
    lost_clock.reset();
  }

  bool operator==(const RoundPart&) const = default;
};

}  // namespace lrun::launcher
