#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "process/exit_status.h"
#include "remote/frames.h"

namespace lrun::launcher {

/// The head's connections to the launchers of all hosts, as the head uses them; a host is a number. HostLinks makes
/// them over ssh.
class HeadLinks {
 public:
  struct Events {
    /// The first frame of every host: its order.
    std::function<std::string(std::size_t host)> order;
    std::function<void(std::size_t host, const NodeFrame& frame)> frame;
    /// The connections to these have ended, and all their frames were reported: to one, or at the same time to all that
    /// were reached by way of it. `last_line`: that the command has printed.
    std::function<void(const std::vector<std::size_t>& hosts, const ExitStatus& status, const std::string& last_line)>
        ended;
    /// This machine cannot start the command that connects.
    std::function<void(std::size_t host, const std::string& why)> failed;
  };

  HeadLinks() = default;
  HeadLinks(const HeadLinks&) = delete;
  HeadLinks& operator=(const HeadLinks&) = delete;
  virtual ~HeadLinks() = default;

  virtual void connect() = 0;
  /// Connects from here to silent hosts that are behind others, where nothing has moved on the way since then. A host
  /// on the way may hang, which does not end its connection.
  virtual void connect_silent_from_here(SteadyTime since) = 0;
  /// When something last moved on the way to this host: a connection was begun, or a copy of lrun went on.
  [[nodiscard]] virtual SteadyTime last_progress(std::size_t host) const = 0;
  virtual void send(std::size_t host, NodeFrame::Kind kind, std::string_view payload) = 0;
  /// To all other machines, relays included. \return false: there are none.
  virtual bool send_elsewhere(NodeFrame::Kind kind) = 0;
  /// Stops reading, or goes on: for a console that is full.
  virtual void pause(bool paused) = 0;
  /// Ends the launcher of the host. Nothing is reported of it any more.
  virtual void close(std::size_t host) = 0;
  /// The host that the head's own connection to this one goes to: itself, or the first on the way.
  [[nodiscard]] virtual std::size_t first_on_the_way(std::size_t host) const = 0;
};

}  // namespace lrun::launcher
