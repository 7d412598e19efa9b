#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/child_query.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "store/host_address.h"

namespace lrun::launcher {

/// Why a host is not reached that the name service does not know.
inline std::string no_such_host(const std::string& host) { return "there is no host '" + host + "'"; }

/// Makes one attempt at a time to connect to a host. A name is resolved in a child process with a deadline. Never
/// blocks. One thread.
class SocketConnector {
 public:
  struct Target {
    std::string host;  ///< a name, or a numeric address
    std::uint16_t port = 0;
    Duration limit{0};                       ///< for the connection, once the address is known
    SteadyTime give_up = SteadyTime::max();  ///< ends the attempt before the limit
    /// Asks the name service, in a child process.
    std::function<std::string(const std::string& host)> find_address = ask_for_address;
  };
  struct Result {
    Fd socket;                ///< connected and nonblocking; empty: `trouble`
    std::string address;      ///< numeric; empty: none was found
    int error = 0;            ///< why the host did not take the connection, as errno; 0: it was not asked, or did
    bool is_unknown = false;  ///< the name service says that there is no such host
    std::string trouble;      ///< as a clause; empty: it is connected
  };

  explicit SocketConnector(EventLoop& loop) : loop_(loop) {}
  SocketConnector(const SocketConnector&) = delete;
  SocketConnector& operator=(const SocketConnector&) = delete;

  /// \param done  is called by the loop, once, unless cancel() or another connect() comes first; it may destroy this
  void connect(Target target, std::function<void(Result)> done);
  void cancel();
  /// Since when the name service has said that there is no such host; empty: it said something else last, or nothing.
  [[nodiscard]] std::optional<SteadyTime> unknown_since() const { return unknown_since_; }

 private:
  void connect_to(const std::string& address);
  void finish(Result result);
  [[nodiscard]] std::string place() const { return target_.host + " port " + std::to_string(target_.port); }

  EventLoop& loop_;
  Target target_;
  std::function<void(Result)> done_;
  std::string address_;
  std::optional<SteadyTime> unknown_since_;
  Fd socket_;
  std::optional<ChildQuery> resolving_;
  EventLoop::Watch writable_;
  EventLoop::Timer timer_;  ///< the limit, or the end of an attempt that failed at once
};

}  // namespace lrun::launcher
