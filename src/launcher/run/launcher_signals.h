#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "process/guard.h"
#include "stop/policy.h"
#include "supervise/signal_echo.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {

/// A signal that reached the launcher, with the guard's forwarding resolved.
struct LauncherSignal {
  int number = 0;          ///< 0: the guard has died
  bool forwarded = false;  ///< the guard got it and passed it on
};

/// Resolves the guard's forwarding, and acknowledges forwarded signals to the guard.
/// \return empty: the signal is to be ignored, as a forwarding signal that the guard did not send.
std::optional<LauncherSignal> launcher_signal(const ReceivedSignal& received, const Guard& guard);

/// Reads the signals of a launcher with workers, and reports what each asks for. One thread.
class LauncherSignals {
 public:
  struct Facts {
    std::vector<int> stop_signals;  ///< those that end the run
    bool repeats_term = false;      ///< the cluster's manager sends TERM several times
    /// Whether the head (the lrun that a person typed with hosts) has passed this signal on; empty: there is no head.
    std::function<bool(int)> passed_on_by_head = {};
    std::function<bool()> head_is_lost = {};  ///< whether the connection to the head was lost; empty: no head
    std::function<SteadyTime()> now = steady_now;
  };
  struct Events {
    std::function<void()> child_ended;
    std::function<void()> guard_died;
    std::function<void()> window_changed;
    /// \param repeats  it is the second copy of a signal, or the manager repeats it: it asks for nothing new where no
    ///                 worker runs
    std::function<void(const SignalArrived& signal, bool repeats)> arrived;
  };

  /// `guard` must outlive this.
  LauncherSignals(const Guard& guard, Facts facts, Events events);

  /// Reads signals from now on. They are blocked already.
  /// \throws std::system_error  there are no descriptors.
  void begin(EventLoop& loop);

  /// A signal has asked for the end of the run: a later TERM may be a repetition.
  void note_end_asked() { end_was_asked_ = true; }

  /// A signal was read. Tests call it as well.
  void received(const ReceivedSignal& signal);

 private:
  void arrived(const LauncherSignal& signal);

  const Guard& guard_;
  Facts facts_;
  Events events_;
  SignalEcho echo_;
  bool end_was_asked_ = false;
  std::optional<SignalSource> source_;
};

}  // namespace lrun::launcher
