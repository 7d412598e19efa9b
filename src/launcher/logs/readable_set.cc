// In: the descriptors of the workers' streams. Out: calls about those that can be read, all in one turn of the loop.
// StreamReader has one for each console.
#include "logs/readable_set.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

namespace lrun::launcher {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSmall = std::size_t{16} * 1024;  ///< bytes of one reading
constexpr auto kRightAfter = 1ms;                       ///< between two readings
constexpr int kReadingsBeforeBusy = 16;
constexpr Duration kBusyPause(1);
constexpr int kLargePipeBytes = 256 * 1024;
constexpr std::size_t kFullPipe = std::size_t{60} * 1024;
constexpr int kMostATurn = 16;  // so that what one turn queues is bounded

}  // namespace

struct ReadableSet::Entry {
  int fd;
  void* tag;
  int small_readings = 0;  ///< in a row, each right after the other
  SteadyTime last_reading = {};
  bool grown = false;           ///< its pipe was found full once and made larger
  bool busy = false;            ///< read by the clock
  std::size_t nearly_full = 0;  ///< bytes in its pipe, when busy
};

ReadableSet::ReadableSet(EventLoop& loop, std::function<std::size_t(void* tag)> ready, std::function<void()> turn_ended)
    : loop_(loop), ready_(std::move(ready)), turn_ended_(std::move(turn_ended)) {}

ReadableSet::~ReadableSet() = default;

void ReadableSet::add(int fd, void* tag) {
  if (!set_) {
    set_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!set_) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  }
  auto entry = std::make_unique<Entry>(Entry{fd, tag});
  watch(*entry);
  entries_[fd] = std::move(entry);
  arm();
}

void ReadableSet::watch(Entry& entry) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &entry;
  if (::epoll_ctl(set_.get(), EPOLL_CTL_ADD, entry.fd, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

void ReadableSet::remove(int fd) {
  const auto entry = entries_.find(fd);
  if (entry == entries_.end()) return;
  if (entry->second->busy) {
    --busy_;
  } else {
    ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
  entries_.erase(entry);
  if (busy_ == 0) busy_timer_.cancel();
  if (entries_.empty()) watch_.cancel();  // the loop may end when nothing is left to wait for
}

void ReadableSet::pause() {
  paused_ = true;
  watch_.cancel();
  busy_timer_.cancel();
}

void ReadableSet::resume() {
  paused_ = false;
  arm();
}

void ReadableSet::arm() {
  if (paused_ || entries_.empty()) return;
  if (!watch_.armed()) watch_ = loop_.on_readable(set_.get(), [this] { turn(); });
  if (busy_ > 0 && !busy_timer_.armed()) busy_timer_ = loop_.after(kBusyPause, [this] { read_busy(); });
}

void ReadableSet::turn() {
  std::array<epoll_event, kMostATurn> events;  // the kernel rotates the rest
  const int count = ::epoll_wait(set_.get(), events.data(), kMostATurn, 0);
  turn_began_ = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    const Entry& entry = *static_cast<Entry*>(events[static_cast<std::size_t>(i)].data.ptr);
    const int fd = entry.fd;
    note_pace(fd, ready_(entry.tag));
  }
  turn_ended_();
  arm();
}

void ReadableSet::read_busy() {
  std::vector<int> busy;
  for (const auto& [fd, entry] : entries_) {
    if (entry->busy) busy.push_back(fd);
  }
  turn_began_ = std::chrono::steady_clock::now();
  int count = 0;
  for (const int fd : busy) {
    const auto entry = entries_.find(fd);  // what happens meanwhile may remove it
    if (entry == entries_.end()) continue;
    note_pace(fd, ready_(entry->second->tag));
    if (++count % kMostATurn == 0) turn_ended_();
    if (paused_) break;
  }
  turn_ended_();
  arm();
}

/// A stream was read; it may be at its end and gone.
void ReadableSet::note_pace(int fd, std::size_t bytes) {
  const auto found = entries_.find(fd);
  if (found == entries_.end()) return;
  Entry& entry = *found->second;
  if (entry.busy) {
    if (bytes > 0 && bytes < entry.nearly_full) return;
    entry.busy = false;
    entry.small_readings = 0;
    --busy_;
    watch(entry);
    return;
  }
  if (bytes >= kFullPipe && !std::exchange(entry.grown, true)) (void)::fcntl(fd, F_SETPIPE_SZ, kLargePipeBytes);
  const bool right_after = turn_began_ - std::exchange(entry.last_reading, turn_began_) < kRightAfter;
  entry.small_readings = right_after && bytes > 0 && bytes < kSmall ? entry.small_readings + 1 : 0;
  if (entry.small_readings >= kReadingsBeforeBusy) make_busy(entry);
}

void ReadableSet::make_busy(Entry& entry) {
  (void)::fcntl(entry.fd, F_SETPIPE_SZ, kLargePipeBytes);  // refused where users may not have that much: then it stays
  const int bytes = ::fcntl(entry.fd, F_GETPIPE_SZ);
  if (bytes <= 0) return;  // a terminal, which holds too little to be left alone
  entry.nearly_full = static_cast<std::size_t>(bytes) / 4 * 3;
  entry.busy = ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, entry.fd, nullptr) == 0;
  if (entry.busy) ++busy_;
}

}  // namespace lrun::launcher
