#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "inspect/run_status.h"
#include "multihost/host_output.h"
#include "multihost/host_table.h"
#include "multihost/message_dedup.h"
#include "remote/head_links.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Stops this process as Ctrl-Z does, until it is continued. SIGTSTP is blocked.
void stop_by_sigtstp();

/// The head of a run on several hosts: sends each host's launcher its order and, once all have answered, the address of
/// the rendezvous; shows their messages and the workers' output; passes signals on, and waits for all of them. It has
/// no workers itself. One thread.
///
///     Connecting ── all can ──► Running ── all have ended ──► Ending
///         └────── some cannot, or a signal ────────────────────┘
class Head {
 public:
  /// One host of the run.
  struct Host {
    bool here = false;  ///< this machine: no ssh
    NodeOrder order;
  };
  struct Options {
    std::string master_addr;        ///< of the first host, as the user says; empty: where ssh reaches it
    std::string program;            ///< lrun's path on the other hosts, for messages
    int min_nodes = 1;              ///< fewer hosts cannot begin
    Duration grace{0};              ///< of the workers
    std::vector<int> stop_signals;  ///< those that end the run
    Duration detour_limit{30'000};  ///< then a silent host behind another is connected to from here
    Duration answer_limit{30'000};  ///< of a host on the way to which nothing moves any more
    Duration end_margin{20'000};    ///< beyond the grace: the leader of the rendezvous waits nearly so long for others
    Duration hurried_end{10'000};   ///< after a second signal
    Duration close_limit{1'500};    ///< for an ssh whose host has reported its end: it may serve others, too
    Clock clock = {};
    std::function<void()> began = [] {};                                              ///< the run has begun on a host
    std::function<void(const std::string& answer)> told = [](const std::string&) {};  ///< a host, to a question
    std::function<void()> stop_process = stop_by_sigtstp;  ///< returns when this process is continued
  };
  /// Makes the connections to all hosts, in their order.
  using MakeLinks = std::function<std::unique_ptr<HeadLinks>(HeadLinks::Events)>;

  /// Everything must outlive this.
  Head(EventLoop& loop, std::vector<Host> hosts, Options options, HostOutput& output, MessageSink& sink,
       const MakeLinks& make_links);
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  struct End {
    int code = 0;
    int signal_number = 0;  ///< lrun is to die of it; 0: no signal

    bool operator==(const End&) const = default;
  };
  /// Runs the loop.
  End run();

  /// How far the run and each of its hosts are; other fields are left empty.
  [[nodiscard]] RunStatus status() const;
  /// Asks the launchers on all hosts that run. \return how many these are
  std::size_t ask(const std::string& question);
  /// The last message about the job that was shown, without colours, and before it the cause where that stands in an
  /// earlier one. Of a run that a signal ended before it began: all since that signal.
  [[nodiscard]] std::string last_words() const;

  /// A signal that was sent to the run: it is passed on. SIGTSTP suspends the head alone.
  void signal_arrived(int signal_number);

 private:
  /// The head connects to the hosts, and waits for their answers.
  struct Connecting {
    EventLoop::Timer answer_limit;
  };
  /// Their launchers run.
  struct Running {
    EventLoop::Timer end_limit;      ///< from the first signal on
    EventLoop::Timer hurried_limit;  ///< from the second signal on
    EventLoop::Timer stop_limit;     ///< of hosts that were stopped because they would wait for ever
    EventLoop::Timer rest_limit;     ///< of hosts that are silent although the job is over
    bool stopped_waiting = false;    ///< hosts that would wait for ever were stopped
  };
  /// The console gets the last lines.
  struct Ending {
    bool has_run = false;
  };

  void received(std::size_t host, const NodeFrame& frame);
  void has_begun(std::size_t host);
  void show_of_job(const std::string& text);
  void show_of_host(std::size_t host, const std::string& payload);
  void tell(Severity severity, const std::string& text);
  void launcher_ended(std::size_t host, const std::string& payload);
  void links_ended(std::vector<std::size_t> hosts, const ExitStatus& status, const std::string& last_line);

  void wait_for_answers();
  void cannot_be_used(std::size_t host, const std::string& why);
  void start_when_all_answered();
  void refuse_hosts(const std::vector<HostProblem>& problems);
  void start();
  [[nodiscard]] std::string rendezvous_for(std::size_t host, const std::vector<ReachedHost>& hosts) const;

  void failed_to_start(std::size_t host, const std::string& why);
  void print_lost(const std::vector<std::size_t>& hosts, const std::string& why);
  void host_ended(std::size_t host);
  void stop_waiting_hosts();
  void limit_the_rest();
  void give_up(const std::function<bool(const HostTable::Host&)>& is_waited_for);
  void close(std::size_t host);
  void finish_when_all_over();

  void send_heartbeat();
  void suspend();
  void end_before_start(int signal_number);
  void send_to_all(NodeFrame::Kind kind, const std::string& payload);

  EventLoop& loop_;
  std::vector<Host> hosts_;
  Options options_;
  HostOutput& output_;
  MessageSink& sink_;
  HostTable table_;
  MessageDedup messages_;
  std::unique_ptr<HeadLinks> links_;
  std::variant<Connecting, Running, Ending> phase_;
  End end_;
  bool run_began_ = false;
  std::string cause_;  ///< the last error that was shown about the job; before one: the first of a host, and its hint
  std::optional<std::size_t> host_to_hint_;     ///< that of `cause_`, whose next message may be its hint
  std::string last_words_;                      ///< the last message
  EventLoop::Timer heartbeat_;                  ///< only while a host is elsewhere
  std::vector<EventLoop::Timer> close_limits_;  ///< by host: its link stays although it has reported its end
};

}  // namespace lrun::launcher
