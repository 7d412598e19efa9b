#pragma once

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::launcher {

/// Recognises the second copy of a signal that was sent to both processes of lrun, by a service manager, a Slurm step
/// or pkill. The launcher gets it directly and, in either order, from the guard, which forwards its own copy. A value.
class SignalEcho {
 public:
  /// A signal has come. \return true when it is the other copy of the one before.
  bool is_echo(int signal_number, bool forwarded, SteadyTime now) {
    const bool echo = signal_number == number_ && forwarded != forwarded_ && now - at_ < kTogether;
    number_ = echo ? 0 : signal_number;
    forwarded_ = forwarded;
    at_ = now;
    return echo;
  }

 private:
  static constexpr Duration kTogether{5000};  ///< long enough for a busy machine

  int number_ = 0;  ///< of the last signal whose other copy has not come; 0: none
  bool forwarded_ = false;
  SteadyTime at_{};
};

}  // namespace lrun::launcher
