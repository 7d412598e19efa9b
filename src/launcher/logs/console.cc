#include "logs/console.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun::launcher {

Console::Console(EventLoop& loop, int fd, std::size_t limit_bytes, Events events)
    : loop_(loop), descriptor_(fd), limit_(limit_bytes), events_(std::move(events)) {}

void Console::write_out() {
  if (!blocked()) retry();
}

void Console::retry() {
  while (!queue_.empty() || draw_foreign_line()) {
    const long count = descriptor_.write_some(queue_.front());
    if (count == -EAGAIN) {
      wait_until_writable();
      return;
    }
    if (count < 0) {
      refused(static_cast<int>(-count));
      break;
    }
    const auto taken = static_cast<std::size_t>(count);
    in_line_ = queue_.front()[taken - 1] != '\n';
    before_last_words_ -= std::min(before_last_words_, taken);
    queue_.consume(taken);
    if (!full()) own_bytes_while_full_ = 0;
    if (leaving_out_ && relieved()) say_what_was_left_out();
  }
  writable_.cancel();
}

void Console::begin_last_words() {
  if (open_writer_ != kNobody) end_line(open_writer_);
  before_last_words_ = queue_.size();
}

bool Console::skip_to_last_words() {
  if (before_last_words_ == 0) return false;
  queue_.consume(std::exchange(before_last_words_, 0) - (in_line_ ? 1 : 0));  // what goes is whole lines
  return true;
}

/// Once lines are left out they all are until the gap is told, so that there is one gap and not many.
bool Console::leaves_out(int writer, std::string_view piece) {
  if (writer == kLauncher ? (own_bytes_while_full_ += piece.size()) <= limit_ : !may_have_gaps()) return false;
  leaving_out_ = true;
  std::uint64_t& count = writer == kLauncher ? own_lines_left_out_ : lines_left_out_;
  count += static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
  return true;
}

void Console::say_what_was_left_out() {
  leaving_out_ = false;
  const auto lines = [](std::uint64_t count) { return fmt::format("... {} {}", count, count == 1 ? "line" : "lines"); };
  if (const std::uint64_t count = std::exchange(lines_left_out_, 0); count > 0) {
    append(kLauncher, {}, fmt::format("{} left out here, all in '{}'\n", lines(count), place_of_all_.value_or("")));
  }
  if (const std::uint64_t count = std::exchange(own_lines_left_out_, 0); count > 0) {
    append(kLauncher, {}, fmt::format("{} of lrun itself left out here\n", lines(count)));
  }
}

void Console::set_live_line(const std::string& text) {
  if (text == live_line_ && live_is_shown_ == !text.empty()) return;
  if (closed_ || open_writer_ != kNobody || !queue_.empty()) return;
  if (live_is_shown_) wipe_live_line();
  live_line_ = text;
  if (text.empty()) return;
  char* const at = queue_.room(text.size());
  std::copy(text.begin(), text.end(), at);
  queue_.commit(text.size());
  live_is_shown_ = true;
}

void Console::set_foreign_line(bool open, const std::string& drawing) {
  if (!descriptor_.terminal()) return;
  foreign_line_ = drawing;
  live_line_ = drawing;
  live_is_shown_ = open;
}

/// \return true when there is now something to be written.
bool Console::draw_foreign_line() {
  if (foreign_line_.empty() || live_is_shown_) return false;
  set_live_line(foreign_line_);
  return live_is_shown_;
}

void Console::redraw(std::string_view sequences) {
  if (live_is_shown_) wipe_live_line();
  char* const at = queue_.room(sequences.size());
  std::memcpy(at, sequences.data(), sequences.size());
  queue_.commit(sequences.size());
}

void Console::wipe_live_line() {
  const std::string_view wipe = live_line_.empty() ? "\n" : "\r\x1b[K";
  live_is_shown_ = false;
  char* const at = queue_.room(wipe.size());
  std::memcpy(at, wipe.data(), wipe.size());
  queue_.commit(wipe.size());
}

void Console::wait_until_writable() {
  if (blocked()) return;
  if (!gate_) {
    gate_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLOUT;
    if (!gate_ || ::epoll_ctl(gate_.get(), EPOLL_CTL_ADD, descriptor_.pollable(), &event) != 0) {
      refused(errno);  // out of descriptors: the console is given up, not the run
      return;
    }
  }
  writable_ = loop_.on_readable(gate_.get(), [this] {
    retry();
    events_.progressed();
  });
}

void Console::refused(int error) {
  queue_.clear();
  before_last_words_ = 0;
  if (descriptor_.means_closed(error)) {
    closed_ = true;
    events_.closed();
  } else if (!std::exchange(warned_, true)) {
    events_.warning("cannot be written: " + std::generic_category().message(error));
  }
}

}  // namespace lrun::launcher
