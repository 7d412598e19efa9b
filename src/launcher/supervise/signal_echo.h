#pragma once

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// Whoever signals both processes of lrun (a service manager, a Slurm step, pkill) means one signal: it comes once from
/// the guard, which passes its own on, and once directly, in either order. A value.
class SignalEcho {
 public:
  /// Takes a signal that came. \return true when it is the other half of the one before.
  bool is_echo(int signal_number, bool forwarded, SteadyTime now) {
    const bool echo = signal_number == number_ && forwarded != forwarded_ && now - at_ < kTogether;
    number_ = echo ? 0 : signal_number;
    forwarded_ = forwarded;
    at_ = now;
    return echo;
  }

 private:
  static constexpr Duration kTogether{5000};  ///< also on a machine that has much else to do

  int number_ = 0;  ///< of the last one that has no other half yet; 0: none
  bool forwarded_ = false;
  SteadyTime at_{};
};

}  // namespace lrun::launcher
