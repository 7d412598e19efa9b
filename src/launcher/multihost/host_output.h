#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "logs/console_set.h"
#include "logs/line_splitter.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// The consoles of the head: the output of all hosts' workers, in whole lines, and lrun's own messages among them.
/// One thread.
class HostOutput final : public MessageSink {
 public:
  struct Events {
    std::function<void(bool full)> filled;  ///< the consoles take no more; or they do again
    std::function<void()> closed;           ///< nobody reads stdout any more; once
  };

  /// \param options  has the descriptors of the consoles
  HostOutput(EventLoop& loop, std::size_t hosts, const LogOptions& options, bool colour);

  void set_events(Events events) { events_ = std::move(events); }

  /// Bytes that workers of a host have printed. A line without its end is shown when nothing follows soon.
  void show(std::size_t host, LogStream stream, std::string_view bytes);
  /// Shows all lines that have no end yet.
  void show_unfinished();
  /// Calls `done` by the loop when the consoles have taken everything, or when the limit is over.
  void when_flushed(Duration limit, std::function<void()> done);
  [[nodiscard]] bool full() const { return full_; }

  void print(Severity severity, std::string_view text) noexcept override { message_of_job(severity, text); }
  void print_lines(std::string_view lines) noexcept override { print_of_job(lines); }
  void print_of_job(std::string_view lines) noexcept override;
  [[nodiscard]] bool colour() const noexcept override { return colour_; }

 private:
  void look_whether_full();

  EventLoop& loop_;
  Events events_;
  bool colour_;
  ConsoleSet consoles_;
  std::vector<std::pair<LineSplitter, LineSplitter>> lines_;  ///< stdout and stderr of each host
  EventLoop::Timer unfinished_;
  bool full_ = false;
};

}  // namespace lrun::launcher
