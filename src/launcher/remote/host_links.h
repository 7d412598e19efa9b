#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "process/exit_status.h"
#include "process/spawn.h"
#include "remote/frames.h"
#include "remote/head_links.h"
#include "remote/host_link.h"

namespace lrun::launcher {

/// The head's connections to the launchers of all hosts: a child process of its own for each, or by way of another
/// host, where a relay makes the connection (host_ways.h). A host that did not answer by way of another is tried again
/// from here: so a reason is always one that the head itself saw, and hosts need not reach each other. Never blocks.
/// One thread.
class HostLinks final : public HeadLinks {
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
  HostLinks(EventLoop& loop, std::vector<Host> hosts, Options options, Events events);

  void connect() override;
  void connect_silent_from_here(SteadyTime since) override;
  [[nodiscard]] SteadyTime last_progress(std::size_t host) const override {
    return last_progress_of(static_cast<int>(host));
  }
  void send(std::size_t host, NodeFrame::Kind kind, std::string_view payload) override;
  bool send_elsewhere(NodeFrame::Kind kind) override;
  void pause(bool paused) override;
  void close(std::size_t host) override;
  [[nodiscard]] std::size_t first_on_the_way(std::size_t host) const override;

 private:
  static constexpr int kHeadItself = -1;

  /// Numbered: the connection to host i's launcher is i, that to a relay on it hosts_.size() + i.
  struct Link {
    int through = kHeadItself;      ///< the relay's that it goes through
    std::unique_ptr<HostLink> own;  ///< where it goes through no relay
    bool open = false;
    bool heard = false;  ///< a frame has come
    SteadyTime moved;    ///< when it was begun, or HostLink::Events::progress was last called
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
  void close_link(int number);
  void ended(int number, const ExitStatus& status, const std::string& last_line);
  void end(int number, const ExitStatus& status, std::vector<std::size_t>& ended);
  [[nodiscard]] SteadyTime last_progress_of(int number) const;
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
