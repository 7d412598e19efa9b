#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "store/etcd_endpoints.h"
#include "store/etcd_login.h"
#include "store/etcd_message.h"
#include "store/http_response.h"
#include "store/send_buffer.h"
#include "store/socket_connector.h"
#include "store/tls_session.h"

namespace lrun::launcher {

/// Talks to an etcd v3 through its JSON gateway: one request after another over one connection that is kept. Where an
/// endpoint does not answer, the next one is asked; so a request may be carried out twice, and has to bear that. Over
/// TLS an endpoint has to prove its identity before it gets a request. Never blocks. One thread.
class EtcdClient {
 public:
  struct Options {
    std::vector<EtcdEndpoint> endpoints;  ///< of one cluster; at least one
    std::string user = {};                ///< empty: without a login
    std::string password = {};
    std::optional<TlsFiles> tls = {};  ///< empty: over plain HTTP
    Duration attempt{2000};            ///< for one endpoint to answer one request
    /// How long to go on where all endpoints refuse the connection and none has answered before: an etcd may be being
    /// started. Zero: as long as for anything else.
    Duration start{0};
  };
  struct Result {
    EtcdAnswer answer;         ///< also an error of etcd's that may be an answer
    std::string trouble = {};  ///< why there is no answer, as a clause; empty: there is one
    std::string hint = {};     ///< what a person can do about it; then it is of little use to ask again
  };
  using Done = std::function<void(const Result&)>;

  EtcdClient(EventLoop& loop, Options options);
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  /// Asks when what was asked before is answered, and again until `limit` has passed since this call. `done` is called
  /// once, by the loop, never from here.
  void ask(EtcdRequest request, Duration limit, Done done);

  /// Forgets all requests: no `done` is called.
  void forget_all();

  /// Our end of the connection over which the last answer came, numeric; empty before there was one.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }
  /// Why the last attempt failed; empty: none has since there was an answer.
  [[nodiscard]] const std::string& last_error() const { return last_error_; }
  /// No etcd has ever answered, and connections are refused: requests fail after Options::start.
  [[nodiscard]] bool is_refused() const { return endpoints_.are_refused(); }

 private:
  using Failure = EtcdEndpoints::Failure;

  struct Pending {
    EtcdRequest request;
    SteadyTime give_up;
    Done done;
  };

  void go_on();
  void connect();
  void connected(SocketConnector::Result result);
  void begin_tls();
  void send();
  void flush();
  void read();
  void decrypt(std::string_view bytes);
  void feed(std::string_view bytes, bool is_end);
  void end_of_connection();
  void take(const HttpResponse& response);
  void take_foreign(const HttpResponse& response);
  void fail_tls();
  void fail(Failure failure, const std::string& why, const std::string& hint = {});
  [[nodiscard]] std::string no_etcd_text() const;
  void refuse(const std::string& why, const std::string& hint);
  void finish(Result result);
  void disconnect();
  [[nodiscard]] Duration time_left() const;

  EventLoop& loop_;
  Options options_;
  EtcdEndpoints endpoints_;
  EtcdLogin login_;
  std::deque<Pending> pending_;
  bool busy_ = false;     ///< something is under way for the first of `pending_`
  bool logs_in_ = false;  ///< and that is the request for a token
  std::string last_error_;
  std::string own_address_;
  SocketConnector connector_;
  Fd socket_;
  bool has_answered_ = false;  ///< the other end of socket_, with any bytes
  bool tls_works_ = false;     ///< an endpoint has answered over it
  std::optional<TlsSession> tls_;
  SendBuffer out_;
  HttpResponseReader reader_;
  EventLoop::Watch readable_;
  EventLoop::Watch writable_;
  EventLoop::Timer attempt_limit_;
  EventLoop::Timer next_;
};

}  // namespace lrun::launcher
