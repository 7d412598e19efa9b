// In: pieces of lines of many writers. Out: bytes on one descriptor, as it takes them. ConsoleSet owns one or two.
#include "logs/console.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun::launcher {

Console::Console(EventLoop& loop, int fd, std::size_t limit_bytes, Events events)
    : loop_(loop), descriptor_(fd), limit_(limit_bytes), events_(std::move(events)), gap_(limit_bytes) {}

void Console::write_out() {
  if (!blocked()) retry();
}

void Console::retry() {
  while (!queue_.empty() || draw_other_line()) {
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
    before_last_lines_ -= std::min(before_last_lines_, taken);
    queue_.consume(taken);
    if (!full()) gap_.relieve();
    if (gap_.is_open() && relieved()) append(kLauncher, {}, gap_.close());
  }
  writable_.cancel();
}

void Console::begin_last_lines() {
  if (open_writer_ != kNobody) end_line(open_writer_);
  before_last_lines_ = queue_.size();
}

bool Console::skip_to_last_lines() {
  if (before_last_lines_ == 0) return false;
  queue_.consume(std::exchange(before_last_lines_, 0) - (in_line_ ? 1 : 0));  // only whole lines are dropped
  return true;
}

void Console::put(std::string_view bytes) {
  char* const at = queue_.room(bytes.size());
  std::copy(bytes.begin(), bytes.end(), at);
  queue_.commit(bytes.size());
}

void Console::set_live_line(const std::string& text) {
  if (text == live_.text() && live_.is_shown() == !text.empty()) return;
  draw_live_line(text);
}

void Console::draw_live_line(const std::string& text) {
  if (closed_ || open_writer_ != kNobody || !queue_.empty()) return;
  if (live_.is_shown()) put(live_.wipe());
  live_.show(text);
  put(text);
}

void Console::set_other_progress_line(bool open, const std::string& drawing) {
  if (descriptor_.terminal()) live_.set_other(open, drawing);
}

/// \return true when there is now something to be written.
bool Console::draw_other_line() {
  const std::string drawing = live_.to_redraw();
  if (drawing.empty()) return false;
  draw_live_line(drawing);
  return live_.is_shown();
}

void Console::redraw(std::string_view sequences) {
  if (live_.is_shown()) put(live_.wipe());
  put(sequences);
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
  before_last_lines_ = 0;
  if (descriptor_.means_closed(error)) {
    closed_ = true;
    events_.closed();
  } else if (!std::exchange(warned_, true)) {
    events_.warning("cannot be written: " + std::generic_category().message(error));
  }
}

}  // namespace lrun::launcher
