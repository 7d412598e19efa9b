#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/child_question.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "store/send_buffer.h"

namespace lrun::launcher {

/// Reads one answer of a TCPStore to COMPARE_SET: the length of a value, and the value. Pure; memory grows with the
/// bytes that came.
class StoredValueReader {
 public:
  /// Bytes came.
  void take(std::string_view bytes);
  /// The value, once it is whole. What is behind it is a refusal: nobody asked for it.
  [[nodiscard]] std::optional<std::string> value() const;
  /// The other end is no TCPStore, or holds what is longer than kMostBytes.
  [[nodiscard]] bool is_refused() const;

  static constexpr std::size_t kMostBytes = std::size_t{2} << 20U;

 private:
  [[nodiscard]] std::optional<std::uint64_t> size() const;

  std::string bytes_;
};

/// A client of a TCPStore, ours or that of torch 2.1 or newer, for an event loop. Its one request is COMPARE_SET, which
/// also reads a key that may not be there without a wait, in every server. One request after another over one
/// connection that is kept; where it breaks the request is sent again, so that it may be carried out twice. Never
/// blocks. One thread.
class CompareSetClient {
 public:
  struct Options {
    std::string host;  ///< a name, or a numeric address
    std::uint16_t port = 0;
    Duration attempt{2000};  ///< for the store to be connected, and to answer one request
  };
  struct Result {
    std::string value;         ///< of the key after the operation; `expected` where there is no such key
    std::string trouble = {};  ///< why there is no answer, as a clause; empty: there is one
  };
  using Told = std::function<void(const Result&)>;

  CompareSetClient(EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
  CompareSetClient(const CompareSetClient&) = delete;
  CompareSetClient& operator=(const CompareSetClient&) = delete;

  /// Puts `desired` where the key holds `expected`, or where there is none and `expected` is empty. Asks again and
  /// again until `limit` has passed since this call. `told` is called once, by the loop, never from here; it may
  /// destroy this.
  void compare_set(const std::string& key, const std::string& expected, const std::string& desired, Duration limit,
                   Told told);
  /// Asks for the value of a key; Result::value is kAbsent where there is none.
  void read(const std::string& key, Duration limit, Told told);

  /// Forgets whatever was asked: nobody is told.
  void forget_all();

  /// Our end of the connection over which the last answer came, numeric; empty before there was one.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }
  /// Why the last attempt failed; empty: none has since there was an answer.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

  /// What nobody may store under a key that is read.
  static constexpr std::string_view kAbsent = "?";

 private:
  struct Pending {
    std::string request;  ///< as it goes over the wire
    SteadyTime give_up;
    Told told;
  };

  void go_on();
  void find_address();
  void connect_to(const std::string& address);
  void connected();
  void send();
  void flush();
  void read_socket();
  void fail(const std::string& why);
  void finish(const Result& result);
  void disconnect();
  [[nodiscard]] Duration time_left() const;
  [[nodiscard]] std::string place() const { return options_.host + " port " + std::to_string(options_.port); }

  EventLoop& loop_;
  Options options_;
  std::deque<Pending> pending_;
  bool busy_ = false;  ///< something is under way for the first of `pending_`
  Fd socket_;
  SendBuffer out_;
  StoredValueReader reader_;
  std::string own_address_;
  std::string trouble_;
  std::optional<ChildQuestion> resolving_;
  EventLoop::Watch readable_;
  EventLoop::Watch writable_;
  EventLoop::Timer attempt_limit_;
  EventLoop::Timer next_;
};

}  // namespace lrun::launcher
