#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "process/exit_status.h"
#include "process/spawn.h"
#include "remote/host_link.h"
#include "remote/node_frames.h"

namespace lrun::launcher {

/// The head's connections to the launchers of all hosts: a child process of its own for each, or by way of another
/// host, where a relay makes the connection (host_ways.h). A host that did not answer by way of another is tried again
/// from here, so that what is told of it is what the head itself sees, and so that hosts need not reach each other.
/// Never blocks. One thread.
class HostLinks {
 public:
  struct Host {
    std::string name;                        ///< for messages
    bool here = false;                       ///< this machine: no ssh
    std::vector<std::string> command;        ///< that starts its launcher
    std::vector<std::string> relay_command;  ///< that starts a relay there
  };
  struct Options {
    std::vector<int> ways;    ///< of the hosts, as host_ways() gives them
    SpawnDefaults defaults;   ///< that this process was started with
    std::string first_bytes;  ///< that every host which is not here gets before anything else
  };
  struct Events {
    /// The first frame of every host: its order.
    std::function<std::string(std::size_t host)> order;
    std::function<void(std::size_t host, const NodeFrame& frame)> frame;
    /// The connections to these have ended, and all that came over them was told: to one, or at the same time to all
    /// that were reached by way of it. `last_line`: that the command has printed.
    std::function<void(const std::vector<std::size_t>& hosts, const ExitStatus& status, const std::string& last_line)>
        ended;
    /// There is no connection, because this machine cannot make one.
    std::function<void(std::size_t host, const std::string& why)> failed;
  };

  HostLinks(EventLoop& loop, std::vector<Host> hosts, Options options, Events events);
  HostLinks(const HostLinks&) = delete;
  HostLinks& operator=(const HostLinks&) = delete;

  void connect();
  /// Hosts that were to answer by way of others, and have not said anything so far, are connected to from here instead
  /// where nothing has moved on the way since then: somebody there may hang, and its connection does not end then.
  void connect_unheard_from_here(SteadyTime since);
  /// When something last moved on the way to this host: a connection was begun, or a copy of lrun.
  [[nodiscard]] SteadyTime last_move(std::size_t host) const { return last_move_of(static_cast<int>(host)); }
  void send(std::size_t host, NodeFrame::Kind kind, std::string_view payload);
  /// To all that are elsewhere, relays as well. \return false: nobody is.
  bool tell_elsewhere(NodeFrame::Kind kind);
  /// Stops reading, or goes on: for a console that takes no more.
  void pause(bool paused);
  /// Nothing is told of the host any more; it is told to end.
  void close(std::size_t host);

  /// The host that the head's own connection to this one goes to: itself, or the first on the way.
  [[nodiscard]] std::size_t first_on_the_way(std::size_t host) const;

 private:
  static constexpr int kHeadItself = -1;

  /// They have numbers: the connection to host i's launcher has i, that to a relay on it has hosts_.size() + i.
  struct Link {
    int through = kHeadItself;      ///< the relay's that it goes through
    std::unique_ptr<HostLink> own;  ///< where it goes through none
    bool open = false;
    bool heard = false;  ///< a frame has come
    SteadyTime moved;    ///< when it was begun, or HostLink::Events::moved was last called
  };

  [[nodiscard]] bool is_relay(int number) const { return static_cast<std::size_t>(number) >= hosts_.size(); }
  [[nodiscard]] int relay_of(std::size_t host) const { return static_cast<int>(hosts_.size() + host); }
  [[nodiscard]] std::size_t host_of(int number) const { return static_cast<std::size_t>(number) % hosts_.size(); }
  [[nodiscard]] Link& link(int number) { return links_[static_cast<std::size_t>(number)]; }
  void connect_from_here(std::size_t host);
  void connect_launcher_from_here(std::size_t host);
  bool open(int number, const std::vector<std::string>& command, std::string& why);
  void connect_behind(std::size_t host);
  void connect_through(int relay, std::size_t host, const std::vector<std::string>& command);
  void start(int relay, int number, const std::vector<std::string>& command);
  void send_to(int number, NodeFrame::Kind kind, std::string_view payload);
  void received(int number, const NodeFrame& frame);
  [[nodiscard]] bool goes_through(int number, int relay) const;
  void hang_up(int number);
  void ended(int number, const ExitStatus& status, const std::string& last_line);
  void end(int number, const ExitStatus& status, std::vector<std::size_t>& ended);
  [[nodiscard]] SteadyTime last_move_of(int number) const;
  [[nodiscard]] bool was_tried_from_here(int number, const ExitStatus& status) const;

  EventLoop& loop_;
  std::vector<Host> hosts_;
  Options options_;
  Events events_;
  std::vector<std::vector<std::size_t>> behind_;  ///< hosts whose connection a relay on this one makes
  std::vector<Link> links_;
  bool paused_ = false;
};

}  // namespace lrun::launcher
