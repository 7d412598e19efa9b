#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/log_stream.h"
#include "logs/console.h"
#include "logs/log_options.h"

namespace lrun::launcher {

/// The consoles of stdout and stderr; one for both where both are the same terminal, pipe or file, so that their lines
/// stay whole and in order.
class ConsoleSet {
 public:
  struct Events {
    std::function<void()> progressed;
    std::function<void(LogStream)> closed;
    std::function<void(const std::string& text)> warning;
  };

  ConsoleSet(EventLoop& loop, const LogOptions& options, Events events);
  ConsoleSet(const ConsoleSet&) = delete;
  ConsoleSet& operator=(const ConsoleSet&) = delete;
  ~ConsoleSet() = default;

  Console& of(LogStream stream) { return stream == LogStream::kErr && err_ ? *err_ : out_; }
  [[nodiscard]] bool shared() const { return err_ == nullptr; }
  /// Lines that they have got so far.
  [[nodiscard]] std::uint64_t lines() const { return out_.lines() + (err_ ? err_->lines() : 0); }
  /// One of them does not take what is queued.
  [[nodiscard]] bool blocked() const { return out_.blocked() || (err_ && err_->blocked()); }

  void write_out();
  void rest();

  void begin_last_lines();
  /// As LogRouter::hurry_last_lines.
  bool hurry_last_lines(Duration limit);
  /// As LogRouter::when_flushed.
  void when_flushed(Duration limit, std::function<void(bool everything)> done);
  /// As LogRouter::flush.
  bool flush(Duration limit);

 private:
  [[nodiscard]] bool empty() const;
  Console::Events events_of(LogStream stream);
  void progressed();
  void flushed(bool everything);

  EventLoop& loop_;
  Events events_;
  bool files_;  ///< what the workers print is in log files, too, unless a stream forbids gaps
  Console out_;
  std::unique_ptr<Console> err_;  ///< empty: the same as out_
  std::function<void(bool everything)> done_;
  EventLoop::Timer flush_limit_;
};

}  // namespace lrun::launcher
