#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// How long launchers wait for each other.
struct RendezvousTimes {
  Duration join{600'000};         ///< for enough of them
  Duration replacement{600'000};  ///< for others in the place of lost ones, where too few are left
  Duration last_call{1000};       ///< with enough of them, for one more: since the last one came
  Duration heartbeat{5000};       ///< a launcher that is silent for so long is lost; a quarter of it lies between two
  Duration progress{5000};        ///< between two tables of missing nodes
  int spares = 0;                 ///< nodes beyond those of the job that are to be there, too, before it begins
  Duration for_spares{30'000};    ///< with enough of the others, for these
  bool operator==(const RendezvousTimes&) const = default;
};

/// When a round begins that has enough nodes, and when those that wait for more of them hear of it or give up.
///
/// With enough nodes, a round still waits until no node has come for a `last_call`: one that came right after the start
/// would restart all workers. The wait ends after kMostPauses of them, even where nodes keep coming and going. Pure:
/// time goes in. A value.
class RoundTiming {
 public:
  static constexpr int kMostPauses = 10;

  RoundTiming(const RendezvousTimes& times, SteadyTime now) : times_(times), opened_(now), told_(now) {}

  /// The launchers of the first round are waited for from now on.
  void open(SteadyTime now) {
    opened_ = told_ = now;
    cancel_call();
  }
  [[nodiscard]] SteadyTime opened() const { return opened_; }
  /// The table of nodes that are there was shown.
  void told(SteadyTime now) { told_ = now; }
  [[nodiscard]] bool table_is_due(SteadyTime now) const { return now >= next_table(); }

  void joined(SteadyTime now) { last_joined_ = now; }
  /// There are not enough nodes, or the round has begun: the next call is a new one.
  void cancel_call() { enough_since_.reset(); }
  /// There are enough nodes. \param is_full  no more can take part
  bool call_is_over(bool is_full, SteadyTime now) {
    enough_since_ = enough_since_.value_or(now);
    return is_full || now >= call_end();
  }
  /// The same before the first round, which also waits for spares.
  bool first_call_is_over(bool is_full, SteadyTime now) {
    enough_since_ = enough_since_.value_or(now);
    return is_full || now >= first_call_end();
  }
  [[nodiscard]] SteadyTime call_end() const {
    const SteadyTime quiet = last_joined_ + times_.last_call;
    return enough_since_ ? std::min(quiet, *enough_since_ + kMostPauses * times_.last_call) : quiet;
  }
  [[nodiscard]] SteadyTime first_call_end() const {
    if (times_.spares == 0) return call_end();
    return enough_since_ ? *enough_since_ + times_.for_spares : kNever;
  }

  /// Between two rounds too few nodes are ready. Said again and again while that is so.
  void fall_short(SteadyTime now) {
    if (!short_since_) short_since_ = told_ = now;
    cancel_call();
  }
  void end_shortage() { short_since_.reset(); }
  [[nodiscard]] bool is_short() const { return short_since_.has_value(); }

  /// Enough nodes have not come in time: for the first round, or for the next one.
  [[nodiscard]] bool join_is_overdue(SteadyTime now) const { return now >= opened_ + times_.join; }
  [[nodiscard]] bool replacement_is_overdue(SteadyTime now) const {
    return short_since_ && now >= *short_since_ + times_.replacement;
  }

  /// When something becomes due before the first round, and while there are too few nodes between two.
  [[nodiscard]] SteadyTime first_deadline(bool has_enough) const {
    const SteadyTime next = std::min(opened_ + times_.join, next_table());
    return has_enough ? std::min(next, first_call_end()) : next;
  }
  [[nodiscard]] SteadyTime shortage_deadline() const {
    return std::min(short_since_.value_or(kNever) + times_.replacement, next_table());
  }

 private:
  static constexpr SteadyTime kNever = SteadyTime() + std::chrono::hours(24 * 365 * 100);

  [[nodiscard]] SteadyTime next_table() const { return told_ + times_.progress; }

  RendezvousTimes times_;
  SteadyTime opened_;
  SteadyTime told_;
  SteadyTime last_joined_{};
  std::optional<SteadyTime> enough_since_;
  std::optional<SteadyTime> short_since_;
};

}  // namespace lrun::launcher
