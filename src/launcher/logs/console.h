#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "base/console_descriptor.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "logs/line_gap.h"
#include "logs/live_line.h"
#include "logs/output_queue.h"

namespace lrun::launcher {

/// Whole lines of many writers on one console, in the order in which they were appended.
///
/// Nothing is written before write_out(), so that a turn of the loop costs one large write. Bytes that the console does
/// not take at once stay queued and follow when it can take them, without a timer. A full disk drops what was queued,
/// with one warning; a closed console drops everything from then on. A terminal that was stopped (Ctrl-S) keeps up to
/// the limit; lines that come then are left out and counted where gap() allows it. lrun's own lines have as much room
/// again behind the workers' lines.
///
/// A terminal may show one live line below the others, for a progress bar.
class Console {
 public:
  /// A writer's number; kLauncher is lrun itself.
  static constexpr int kLauncher = -1;

  struct Events {
    std::function<void()> progressed;                      ///< a blocked console took bytes
    std::function<void()> closed;                          ///< the reader is gone; once
    std::function<void(const std::string& text)> warning;  ///< why bytes were lost, for people; once
  };

  /// \param limit_bytes  queued before full() says so.
  Console(EventLoop& loop, int fd, std::size_t limit_bytes, Events events);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console() = default;

  /// Adds a piece of `writer`'s line: it ends the line if it ends with '\n', and else the writer's next piece goes on.
  /// The prefix stands once a line, and again where another writer came in between.
  void append(int writer, std::string_view prefix, std::string_view piece) {
    if (closed_ || piece.empty()) return;
    if ((gap_.is_open() || full()) && gap_.takes(piece, writer == kLauncher, may_have_gaps())) return;
    if (live_.is_shown()) put(live_.wipe());
    char* const start = queue_.room(prefix.size() + piece.size() + 1);
    char* at = start;
    if (open_writer_ != writer) {
      if (open_writer_ != kNobody) *at++ = '\n';
      if (!prefix.empty()) std::memcpy(at, prefix.data(), prefix.size());
      at += prefix.size();
    }
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
    open_writer_ = piece.back() == '\n' ? kNobody : writer;
    if (open_writer_ == kNobody) ++lines_;
    queue_.commit(static_cast<std::size_t>(at - start));
  }

  /// The writer is at its end: its unfinished line, if any, gets a newline.
  void end_line(int writer) {
    if (open_writer_ == writer) append(writer, {}, "\n");
  }

  /// Which lines may be left out while a stopped terminal is full.
  [[nodiscard]] LineGap& gap() { return gap_; }
  /// Workers' lines are left out, so that they need not wait.
  [[nodiscard]] bool may_have_gaps() const { return gap_.allowed() && descriptor_.terminal(); }

  /// Shows `text` below all lines until something is written or it is set again; empty: nothing any more. Ignored
  /// while a line is unfinished or the console takes nothing.
  void set_live_line(const std::string& text);

  /// Another program shares the terminal and has left an unfinished line at its end. Before anything else is written
  /// the line is wiped, and afterwards drawn again. Called whenever it changes.
  /// \param open     there is such a line
  /// \param drawing  draws it again; empty: nothing can, so that a new line is begun below it
  void set_other_progress_line(bool open, const std::string& drawing);

  /// Writes control sequences and text over lines that the terminal shows, a live line wiped before.
  void redraw(std::string_view sequences);

  /// Lines written or queued so far, live ones left out.
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

  /// Writes what is queued as far as the console takes it now.
  void write_out();

  /// As write_out() when the loop does not run: also when the console did not take anything before.
  void retry();

  /// Lines that are appended from now on are the last ones, and matter more than what is still queued.
  void begin_last_lines();
  /// Drops what is queued before the last lines; a line that the console has a part of ends there. \return something
  /// was in their way.
  bool skip_to_last_lines();

  [[nodiscard]] std::size_t queued_bytes() const { return queue_.size(); }
  /// The console does not take what is queued.
  [[nodiscard]] bool blocked() const { return writable_.armed(); }
  /// The same, and that is more than the limit.
  [[nodiscard]] bool full() const { return queue_.size() > limit_ && blocked(); }
  /// So little is left that reading may go on.
  [[nodiscard]] bool relieved() const { return queue_.size() <= limit_ / 2; }
  [[nodiscard]] const ConsoleDescriptor& descriptor() const { return descriptor_; }
  /// Nothing is queued and no worker writes any more: gives the memory back.
  void rest() {
    if (queue_.empty()) queue_.clear();
  }

 private:
  static constexpr int kNobody = -2;

  /// Queues bytes as they are.
  void put(std::string_view bytes);
  void draw_live_line(const std::string& text);
  bool draw_other_line();
  void wait_until_writable();
  void refused(int error);

  EventLoop& loop_;
  ConsoleDescriptor descriptor_;
  std::size_t limit_;
  Events events_;
  OutputQueue queue_;
  std::size_t before_last_lines_ = 0;  ///< queued bytes that skip_to_last_lines() drops
  bool in_line_ = false;               ///< the last byte that the console took was not the end of a line
  int open_writer_ = kNobody;          ///< whose line is unfinished at the end of the queue
  std::uint64_t lines_ = 0;
  LineGap gap_;
  LiveLine live_;
  bool closed_ = false;
  bool warned_ = false;
  Fd gate_;                    ///< an epoll set of the console alone: the loop makes what it watches non-blocking
  EventLoop::Watch writable_;  ///< armed while the console does not take more
};

}  // namespace lrun::launcher
