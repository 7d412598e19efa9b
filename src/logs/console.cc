#include "logs/console.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun {

Console::Console(EventLoop& loop, int fd, std::size_t limit_bytes, Events events)
    : loop_(loop), descriptor_(fd), limit_(limit_bytes), events_(std::move(events)) {}

void Console::write_out() {
  if (!blocked()) retry();
}

void Console::retry() {
  while (!queue_.empty()) {
    const long count = descriptor_.write_some(queue_.front());
    if (count == -EAGAIN) {
      wait_until_writable();
      return;
    }
    if (count < 0) {
      refused(static_cast<int>(-count));
      break;
    }
    queue_.consume(static_cast<std::size_t>(count));
  }
  writable_.cancel();
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
  if (descriptor_.means_closed(error)) {
    closed_ = true;
    events_.closed();
  } else if (!std::exchange(warned_, true)) {
    events_.warning(fmt::format("the console cannot be written: {}; lines are missing there",
                                std::generic_category().message(error)));
  }
}

}  // namespace lrun
