#include "store/socket_poll.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace lrun::launcher {
namespace {

/// Events in one turn; after them the loop's other work comes first.
constexpr int kEventsPerTurn = 128;

epoll_event asked_for(std::uint64_t name, SocketEvents events) {
  epoll_event event{};
  event.events = (events.readable ? std::uint32_t{EPOLLIN} : 0U) | (events.writable ? std::uint32_t{EPOLLOUT} : 0U);
  event.data.u64 = name;
  return event;
}

void control(int epoll, int operation, int socket, epoll_event event) {
  if (::epoll_ctl(epoll, operation, socket, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

}  // namespace

SocketPoll::SocketPoll(EventLoop& loop, std::function<void(std::uint64_t name, SocketEvents events)> ready)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), ready_(std::move(ready)) {
  if (!epoll_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  watch_ = loop.on_readable(epoll_.get(), [this] { take_turn(); });
}

void SocketPoll::add(int socket, std::uint64_t name, SocketEvents events) {
  control(epoll_.get(), EPOLL_CTL_ADD, socket, asked_for(name, events));
}

void SocketPoll::change(int socket, std::uint64_t name, SocketEvents events) {
  control(epoll_.get(), EPOLL_CTL_MOD, socket, asked_for(name, events));
}

void SocketPoll::remove(int socket) {
  epoll_event ignored{};
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, &ignored);
}

void SocketPoll::take_turn() {
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsPerTurn, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const bool over = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    ready_(event.data.u64,
           {.readable = over || (event.events & EPOLLIN) != 0, .writable = over || (event.events & EPOLLOUT) != 0});
  }
}

}  // namespace lrun::launcher
