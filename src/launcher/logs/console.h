#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/console_descriptor.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "logs/output_queue.h"

namespace lrun::launcher {

/// Whole lines of many writers on one console, in the order in which they were appended.
///
/// Nothing is written before write_out(), so that a turn of the loop costs one large write. What the console does not
/// take at once stays queued and follows when it can, without a timer. A full disk drops what was queued, with one
/// warning; a closed console drops everything from then on. A terminal that was stopped (Ctrl-S) keeps up to the limit;
/// with allow_gaps(), lines that come then are left out and counted, and one line in their place says where they are.
/// What lrun says itself has as much room again behind the workers' lines; beyond that it is left out and counted, too.
///
/// A terminal may show one live line below the others, for a progress bar: it is wiped before anything else is written.
class Console {
 public:
  /// A writer's number; kLauncher is lrun itself.
  static constexpr int kLauncher = -1;

  struct Events {
    std::function<void()> progressed;                      ///< a blocked console took bytes
    std::function<void()> closed;                          ///< nobody reads any more; once
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
    if ((leaving_out_ || full()) && leaves_out(writer, piece)) return;
    if (live_is_shown_) wipe_live_line();
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

  /// Lines may be left out while a stopped terminal is full: all of them are also in `place`.
  void allow_gaps(std::string place) { place_of_all_ = std::move(place); }
  /// Every line counts from now on, whatever allow_gaps() says, as some are nowhere else.
  void forbid_gaps() { gaps_forbidden_ = true; }
  [[nodiscard]] bool gaps_forbidden() const { return gaps_forbidden_; }
  [[nodiscard]] bool may_have_gaps() const { return place_of_all_ && !gaps_forbidden_ && descriptor_.terminal(); }

  /// Shows `text` below all lines until something is written or it is set again; empty: nothing any more. Ignored
  /// while a line is unfinished or the console takes nothing.
  void set_live_line(const std::string& text);

  /// Another program shares the terminal and has left an unfinished line at its end: before anything else is written
  /// the line is wiped, and drawn again behind it. Called whenever it changes; not open: there is none any more.
  /// \param drawing  empty: it cannot be drawn again, so that a new line is begun below it.
  void set_foreign_line(bool open, const std::string& drawing);

  /// Writes control sequences and text over lines that the terminal shows, a live line wiped before.
  void redraw(std::string_view sequences);

  /// Lines written or queued so far, live ones left out.
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

  /// Writes what is queued as far as the console takes it now.
  void write_out();

  /// As write_out() when the loop does not run: also when the console did not take anything before.
  void retry();

  /// What is appended from now on matters more than what is still queued.
  void begin_last_words();
  /// Drops what is queued before the last words; a line that the console has a part of ends there. \return something
  /// was in their way.
  bool skip_to_last_words();

  [[nodiscard]] std::size_t queued_bytes() const { return queue_.size(); }
  /// The console does not take what is queued, and that is more than the limit.
  [[nodiscard]] bool full() const { return queue_.size() > limit_ && blocked(); }
  /// So little is left that reading may go on.
  [[nodiscard]] bool relieved() const { return queue_.size() <= limit_ / 2; }
  [[nodiscard]] const ConsoleDescriptor& descriptor() const { return descriptor_; }
  [[nodiscard]] std::size_t memory_bytes() const { return queue_.capacity(); }
  /// Nothing is queued and no worker writes any more: gives the memory back.
  void rest() {
    if (queue_.empty()) queue_.clear();
  }

 private:
  static constexpr int kNobody = -2;

  [[nodiscard]] bool blocked() const { return writable_.armed(); }
  /// The piece is left out.
  bool leaves_out(int writer, std::string_view piece);
  void say_what_was_left_out();
  void wipe_live_line();
  bool draw_foreign_line();
  void wait_until_writable();
  void refused(int error);

  EventLoop& loop_;
  ConsoleDescriptor descriptor_;
  std::size_t limit_;
  Events events_;
  OutputQueue queue_;
  std::size_t before_last_words_ = 0;  ///< queued bytes that skip_to_last_words() drops
  bool in_line_ = false;               ///< what the console took last was not the end of a line
  int open_writer_ = kNobody;          ///< whose line is unfinished at the end of the queue
  std::uint64_t lines_ = 0;
  std::optional<std::string> place_of_all_;
  bool gaps_forbidden_ = false;
  bool leaving_out_ = false;              ///< until the gap was told
  std::uint64_t lines_left_out_ = 0;      ///< of workers
  std::uint64_t own_lines_left_out_ = 0;  ///< of lrun
  std::string live_line_;                 ///< as it is shown; empty: another program's, which cannot be drawn again
  std::string foreign_line_;              ///< drawn again when it was wiped; empty: there is none
  std::size_t own_bytes_while_full_ = 0;  ///< of lrun's own lines; beyond the limit they are left out, too
  bool live_is_shown_ = false;
  bool closed_ = false;
  bool warned_ = false;
  Fd gate_;                    ///< an epoll set of the console alone: the loop makes what it watches non-blocking
  EventLoop::Watch writable_;  ///< armed while the console does not take more
};

}  // namespace lrun::launcher
