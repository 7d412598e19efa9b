#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/event_loop.h"
#include "rendezvous/launcher_link.h"

namespace lrun::launcher {

/// Looks, for a leader whose rendezvous is away from the job's endpoint, whether another launcher serves one there, and
/// invites it. A launcher that is started again on the endpoint's host would not find the job otherwise, and begin a
/// second one. The watch connects and does the handshake of any launcher, and keeps a connection that is accepted. Else
/// it tries again well within a second, the default last call: a rendezvous that is new there has not begun a round
/// then. While the host refuses connections, its name is looked up every few seconds only. Never blocks. One thread.
class EndpointWatch {
 public:
  /// \param address  of the endpoint, numeric
  using Answered = std::function<void(const LauncherMessage& answer, const std::string& address)>;

  /// \param endpoint  where to look, and as whom; of its times only the heartbeat counts
  /// \param round     in which the job is
  /// \param answered  gets each answer; must not destroy the watch
  EndpointWatch(EventLoop& loop, LauncherLink::Options endpoint, int round, Answered answered);
  EndpointWatch(const EndpointWatch&) = delete;
  EndpointWatch& operator=(const EndpointWatch&) = delete;

 private:
  void look();
  void broken();

  EventLoop& loop_;
  LauncherLink::Options endpoint_;
  Answered answered_;
  std::string name_;      ///< of the endpoint's host, or its address
  SteadyTime looked_up_;  ///< when that was
  std::optional<LauncherLink> link_;
  EventLoop::Timer again_;
};

}  // namespace lrun::launcher
