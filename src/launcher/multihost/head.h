#pragma once

#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "cluster/user_hosts.h"
#include "logs/console_set.h"
#include "logs/line_splitter.h"
#include "multihost/message_dedup.h"
#include "process/exit_status.h"
#include "process/spawn.h"
#include "remote/host_links.h"
#include "remote/host_ways.h"
#include "remote/reached_hosts.h"
#include "remote/frames.h"
#include "report/hosts_text.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {

/// The head of a run on several hosts: starts a launcher on each, tells them where to meet once all have answered,
/// shows what they say and what the workers print, passes signals on, and waits for all of them. It has no workers
/// itself. One thread.
class Head {
 public:
  /// One host of the run.
  struct Start {
    std::string name;                        ///< as typed
    bool here = false;                       ///< this machine: no ssh
    std::vector<std::string> command;        ///< that starts its launcher
    std::vector<std::string> relay_command;  ///< that starts what reaches others through it
    std::string program;                     ///< lrun's path there, for messages
    NodeOrder order;
  };
  struct Options {
    std::string master_addr;  ///< of the first host, as the user says; empty: where ssh reaches it
    int min_nodes = 1;        ///< fewer hosts cannot begin
    std::size_t most_connections = kMostConnections;  ///< of one lrun: further hosts are reached through others
    Duration detour_limit{30'000};                    ///< then who is silent behind another is connected to from here
    Duration answer_limit{30'000};                    ///< of a host on the way to which nothing moves any more
    Duration grace{0};                                ///< of the workers
    bool colour = false;                              ///< the console takes it
    std::vector<int> signals;                         ///< to be passed on, blocked; SIGTSTP suspends the head alone
    std::vector<int> stop_signals;                    ///< those of them that end the run
    SpawnDefaults defaults;                           ///< that this process was started with
    std::string first_bytes;                          ///< that every host which is not here gets before anything else
  };

  Head(EventLoop& loop, std::vector<Start> hosts, Options options);
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  struct End {
    int code = 0;
    int signal_number = 0;  ///< lrun is to die of it; 0: of none
  };
  End run();

 private:
  struct Host {
    Start start;
    std::string problem;  ///< why it cannot be used
    std::optional<NodeReady> ready;
    bool begun = false;
    bool over = false;  ///< its link has ended, or is not waited for any more
    std::optional<ExitStatus> end;
    LineSplitter out;
    LineSplitter err;
    EventLoop::Timer hang_up;  ///< for when its link stays although it has told its end
  };

  [[nodiscard]] std::unique_ptr<HostLinks> links_to(const std::vector<Host>& hosts);
  void wait_for_answers();
  void received(std::size_t index, const NodeFrame& frame);
  void cannot_be_used(std::size_t index, const std::string& why);
  void failed_to_start(std::size_t index, const std::string& why);
  void hang_up(std::size_t index);
  void links_ended(std::vector<std::size_t> indexes, const ExitStatus& status, const std::string& last_line);
  void start_when_all_answered();
  void refuse_hosts();
  void begin();
  [[nodiscard]] std::string meeting_for(std::size_t index, const std::vector<ReachedHost>& hosts) const;
  void tell_lost(const std::vector<std::size_t>& lost, const std::string& why);
  void host_ended(std::size_t index);
  void stop_those_who_wait();
  void limit_the_rest();
  void show(std::size_t index, LineSplitter& splitter, LogStream stream, std::string_view bytes);
  void show_unfinished();
  void say(const std::string& text);
  void hold_back_when_full();
  void say_that_we_live();
  void suspend();
  void signal_arrived(int signal_number);
  void send_to_all(NodeFrame::Kind kind, const std::string& payload);
  void give_up(const std::function<bool(const Host&)>& is_waited_for);
  void finish_when_all_ended();
  [[nodiscard]] int code_of_run() const;

  EventLoop& loop_;
  Options options_;
  std::vector<Host> hosts_;
  MessageDedup words_;
  ConsoleSet consoles_;
  std::unique_ptr<HostLinks> links_;
  bool colour_;
  bool started_ = false;
  bool stopping_those_who_wait_ = false;
  bool paused_ = false;
  bool done_ = false;
  End end_;
  SignalSource signals_;
  EventLoop::Timer alive_;  ///< only while a host is elsewhere
  EventLoop::Timer answer_limit_;
  EventLoop::Timer end_limit_;
  EventLoop::Timer hurried_limit_;  ///< from the second signal on
  EventLoop::Timer stop_limit_;     ///< of those who were stopped because they would wait for ever
  EventLoop::Timer rest_limit_;     ///< of those who are silent although the job is over
  EventLoop::Timer unfinished_;
};

}  // namespace lrun::launcher
