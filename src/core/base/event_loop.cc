// In: descriptors and deadlines with their callbacks. Out: the callbacks, one at a time. Called by all of the launcher.
// One of the three files that know Boost.Asio.
#include "base/event_loop.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

namespace lrun::inline core {

namespace asio = boost::asio;
using WaitType = asio::posix::descriptor_base::wait_type;

namespace {

/// One entry of the reactor. A socket may have a read and a write watch, but the kernel takes a descriptor once.
struct Registration {
  explicit Registration(asio::io_context& context) : descriptor(context) {}

  asio::posix::stream_descriptor descriptor;
  int watches = 0;
};

}  // namespace

struct EventLoop::Implementation {
  asio::io_context context{1};  // one thread: Asio leaves its locks out
  std::map<int, std::shared_ptr<Registration>> registrations;

  std::shared_ptr<Registration> registration_of(int fd) {
    std::shared_ptr<Registration>& entry = registrations[fd];
    if (!entry) {
      struct ::stat status {};
      if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        // epoll refuses a regular file and Asio would then never call back; the error belongs to the caller.
        registrations.erase(fd);
        throw std::system_error(EPERM, std::generic_category(), "a regular file cannot be watched");
      }
      auto fresh = std::make_shared<Registration>(context);
      try {
        fresh->descriptor.assign(fd);
      } catch (...) {
        registrations.erase(fd);
        throw;
      }
      entry = std::move(fresh);
    }
    ++entry->watches;
    return entry;
  }

  /// The descriptor is the caller's: with its last watch it leaves the epoll set, before its owner closes it (a stale
  /// entry would fire for whatever reuses the number), and is never closed here.
  void drop(int fd) {
    const auto entry = registrations.find(fd);
    if (entry == registrations.end() || --entry->second->watches > 0) return;
    (void)entry->second->descriptor.release();
    registrations.erase(entry);
  }
};

struct EventLoop::Watch::State : std::enable_shared_from_this<State> {
  State(Implementation& implementation, int descriptor, WaitType wait, std::function<void()> ready)
      : owner(implementation),
        fd(descriptor),
        kind(wait),
        callback(std::move(ready)),
        registration(implementation.registration_of(descriptor)) {}

  void arm() {
    registration->descriptor.async_wait(kind, [self = shared_from_this()](const boost::system::error_code& error) {
      if (error || !self->active) return;
      self->callback();
      if (self->active) self->arm();
    });
  }

  void disarm() {
    if (!std::exchange(active, false)) return;
    owner.drop(fd);
  }

  Implementation& owner;
  int fd;
  WaitType kind;
  std::function<void()> callback;
  std::shared_ptr<Registration> registration;  // shared by the two watches of one descriptor
  bool active = true;
};

struct EventLoop::Timer::State {
  State(asio::io_context& context, Duration delay) : timer(context, delay) {}

  asio::steady_timer timer;
  bool active = true;
};

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

EventLoop::Watch::~Watch() { cancel(); }

void EventLoop::Watch::cancel() {
  if (state_) std::exchange(state_, nullptr)->disarm();
}

EventLoop::Timer& EventLoop::Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

EventLoop::Timer::~Timer() { cancel(); }

void EventLoop::Timer::cancel() {
  if (!state_) return;
  state_->active = false;
  state_->timer.cancel();
  state_.reset();
}

bool EventLoop::Timer::armed() const { return state_ && state_->active; }

EventLoop::EventLoop() : implementation_(std::make_unique<Implementation>()) {}
EventLoop::~EventLoop() = default;

EventLoop::Watch EventLoop::on_readable(int fd, std::function<void()> ready) {
  Watch watch;
  watch.state_ = std::make_shared<Watch::State>(*implementation_, fd, WaitType::wait_read, std::move(ready));
  watch.state_->arm();
  return watch;
}

EventLoop::Watch EventLoop::on_writable(int fd, std::function<void()> ready) {
  Watch watch;
  watch.state_ = std::make_shared<Watch::State>(*implementation_, fd, WaitType::wait_write, std::move(ready));
  watch.state_->arm();
  return watch;
}

EventLoop::Timer EventLoop::after(Duration delay, std::function<void()> expired) {
  Timer timer;
  timer.state_ = std::make_shared<Timer::State>(implementation_->context, delay);
  timer.state_->timer.async_wait(
      [state = timer.state_, callback = std::move(expired)](const boost::system::error_code& error) {
        if (error || !state->active) return;
        state->active = false;
        callback();
      });
  return timer;
}

void EventLoop::run() {
  implementation_->context.run();
  implementation_->context.restart();  // after, not before: a stop() that came early ends the run at once
}

void EventLoop::stop() { implementation_->context.stop(); }

}  // namespace lrun::inline core
