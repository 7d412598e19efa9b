#include "logs/readable_set.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace lrun {

ReadableSet::ReadableSet(EventLoop& loop, std::function<void(void* tag)> ready, std::function<void()> turn_ended)
    : loop_(loop), ready_(std::move(ready)), turn_ended_(std::move(turn_ended)) {}

void ReadableSet::add(int fd, void* tag) {
  if (!set_) {
    set_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!set_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = tag;
  if (::epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
  ++count_;
  arm();
}

void ReadableSet::remove(int fd) {
  ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, nullptr);
  if (--count_ == 0) watch_.cancel();  // the loop may end when nothing is left to wait for
}

void ReadableSet::pause() {
  paused_ = true;
  watch_.cancel();
}

void ReadableSet::resume() {
  paused_ = false;
  arm();
}

void ReadableSet::arm() {
  if (paused_ || count_ == 0 || watch_.armed()) return;
  watch_ = loop_.on_readable(set_.get(), [this] { turn(); });
}

void ReadableSet::turn() {
  std::array<epoll_event, 16> events;  // few, so that what one turn queues is bounded; the kernel rotates the rest
  const int count = ::epoll_wait(set_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) ready_(events[static_cast<std::size_t>(i)].data.ptr);
  turn_ended_();
}

}  // namespace lrun
