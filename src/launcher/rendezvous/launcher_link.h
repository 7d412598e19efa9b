#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "rendezvous/clock_offset.h"
#include "rendezvous/handshake.h"
#include "rendezvous/message.h"
#include "rendezvous/silence_watch.h"
#include "store/send_buffer.h"
#include "store/socket_connector.h"

namespace lrun::launcher {

/// A launcher's connection to the leader of its job. Connects, again and again until `connect` has passed, and joins;
/// sends heartbeats; passes messages on. A program that answers and is no launcher of this version with the same secret
/// is not tried again. Never blocks. One thread.
class LauncherLink {
 public:
  struct Options {
    std::string host;  ///< a name, or a numeric address
    std::uint16_t port = 0;
    JoinRecord record;                ///< `address` may be empty: the route to the leader decides
    Duration connect{0};              ///< how long to try
    Duration name = Duration::max();  ///< how long to try while the name service says that there is no such host
    bool is_up = false;               ///< something listens there already: a refusal is as a name that is unknown
    Duration heartbeat{5000};
    std::string secret = {};                      ///< that the other end has to know; empty: none
    std::string port_option = "--rdzv-endpoint";  ///< that names another port where no lrun has this one
    std::string host_option = "--rdzv-endpoint";  ///< that names the host
    /// The last round in which this launcher took part, where it belongs to a job that has lost its leader.
    std::optional<int> resumes = {};
    /// The round that runs, where this launcher leads its job elsewhere: it does not join, but invites.
    std::optional<int> invites_to = {};
    bool was_spare = false;  ///< this launcher waited for a place in such a job
    /// Its node rank in that round, which is its vote for the other end. Given once: a connection that is refused, or
    /// lost after it, is not made again.
    std::optional<int> vote = {};
    Duration attempt{5000};  ///< for one attempt to connect, and for one handshake
    /// Asks the name service, in a child process.
    std::function<std::string(const std::string& host)> find_address = ask_for_address;
  };
  struct Events {
    /// Must not destroy the link.
    std::function<void(const LauncherMessage& message)> received;
    /// The link is of no use any more. `hint` says what a person can do about it; empty: nothing special.
    std::function<void(const std::string& why, const std::string& hint)> broken;
    std::function<void()> joined = {};  ///< the leader takes messages now; may be empty
    /// The connection of a link that has joined, and -1 before it is closed: a copy of it may be closed any time after.
    /// May be empty.
    std::function<void(int connection)> connection = {};
  };

  LauncherLink(EventLoop& loop, Options options, Events events);
  ~LauncherLink() { disconnect(); }
  LauncherLink(const LauncherLink&) = delete;
  LauncherLink& operator=(const LauncherLink&) = delete;

  /// Dropped when there is no connection.
  void send(const LauncherMessage& message);
  /// The job has begun: from now on a lost connection is not made again.
  void stay_closed() { keeps_closed_ = true; }
  /// Nothing is reported any more, whatever happens.
  void close();

  [[nodiscard]] const ClockOffset& clock_offset() const { return offset_; }
  /// The last sign of life of the other end, on its steady clock.
  [[nodiscard]] std::int64_t heard_ns() const;
  /// Where the leader is, numeric; empty before it was reached.
  [[nodiscard]] const std::string& server_address() const { return options_.record.leader_address; }
  /// Where `host` was found last, numeric; empty before it was.
  [[nodiscard]] const std::string& found_address() const { return found_address_; }
  /// The last attempt failed because the host refused the connection.
  [[nodiscard]] bool was_refused() const { return refused_since_.has_value(); }
  [[nodiscard]] bool joined() const { return joined_; }
  /// How long this link tries to reach the leader.
  [[nodiscard]] Duration connect_timeout() const {
    return wrong_since() ? std::min(options_.name, options_.connect) : options_.connect;
  }
  [[nodiscard]] std::uint16_t port() const { return options_.port; }
  /// The link broke because the other end's host closed it, not because of silence.
  [[nodiscard]] bool was_closed() const { return was_closed_; }
  /// It is the store of another job, which has one node.
  [[nodiscard]] bool met_lone_job() const { return handshake_.met_lone_job(); }
  /// Why the last attempt to reach the leader failed; empty before one has.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }

 private:
  void connect();
  void connected(SocketConnector::Result result);
  /// Since when the address has been that of no leader; empty: it may be one's.
  [[nodiscard]] std::optional<SteadyTime> wrong_since() const {
    return options_.is_up && refused_since_ ? refused_since_ : connector_.unknown_since();
  }
  void join();
  void read();
  bool shake_hands(std::string_view bytes);
  void take_messages();
  void take_acknowledgement(const LauncherMessage& message);
  void flush();
  void send_heartbeat();
  void fail(const std::string& why);
  void fail_by_silence();
  void give_up(const std::string& why, const std::string& hint = {});
  void disconnect();
  [[nodiscard]] std::string place() const { return options_.host + " port " + std::to_string(options_.port); }

  EventLoop& loop_;
  Options options_;
  Events events_;
  SteadyTime give_up_;
  Duration pause_{2};  ///< short at first: the leader was started at the same time
  SocketConnector connector_;
  std::optional<SteadyTime> refused_since_;  ///< set by each of the last attempts; empty: the last one ended otherwise
  Fd socket_;
  Handshake handshake_;
  LauncherMessageDecoder decoder_{kMostBytesFromLeader};
  SendBuffer out_;
  SilenceWatch silence_;
  bool on_one_host_ = false;  ///< as the server: both have one clock
  ClockOffset offset_;
  bool joined_ = false;
  bool keeps_closed_ = false;
  bool done_ = false;
  bool was_closed_ = false;
  bool said_leaderless_ = false;
  std::string found_address_;
  std::string last_error_;
  EventLoop::Watch readable_;
  EventLoop::Watch writable_;
  EventLoop::Timer attempt_limit_;
  EventLoop::Timer next_;  ///< attempt, or heartbeat, or the end
};

}  // namespace lrun::launcher
