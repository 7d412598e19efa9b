#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::inline core {

/// The launcher's one thread: callbacks on readable and writable descriptors and on deadlines.
///
/// A thin wrapper of Boost.Asio that keeps Boost out of every header. It never polls: with no timer armed and nothing
/// readable it sleeps for ever. All calls and all callbacks are on the thread that calls run(). A callback may arm,
/// cancel and destroy any watch or timer, its own included.
class EventLoop {
 public:
  /// Keeps a callback armed while it lives. The descriptor belongs to the caller and must outlive the watch.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&&) noexcept = default;
    Watch& operator=(Watch&& other) noexcept;
    ~Watch();
    /// Disarms; the callback is not called again.
    void cancel();
    [[nodiscard]] bool armed() const { return state_ != nullptr; }

   private:
    friend class EventLoop;
    struct State;
    std::shared_ptr<State> state_;  // shared with the one pending wait inside Asio
  };

  /// Calls back once; destroying or re-arming it before then cancels.
  class Timer {
   public:
    Timer() = default;
    Timer(Timer&&) noexcept = default;
    Timer& operator=(Timer&& other) noexcept;
    ~Timer();
    void cancel();
    [[nodiscard]] bool armed() const;

   private:
    friend class EventLoop;
    struct State;
    std::shared_ptr<State> state_;  // shared with the one pending wait inside Asio
  };

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Calls `ready` whenever `fd` is readable (or at its end) until the watch is cancelled. `fd` may be any pollable
  /// descriptor: pipe, socket, pidfd, signalfd, terminal. A regular file is refused.
  /// \throws std::system_error  EPERM for a regular file, EBADF.
  [[nodiscard]] Watch on_readable(int fd, std::function<void()> ready);
  /// The same for writable. At most one watch of each kind per descriptor.
  [[nodiscard]] Watch on_writable(int fd, std::function<void()> ready);

  [[nodiscard]] Timer after(Duration delay, std::function<void()> expired);

  /// Runs callbacks until stop() or until nothing is armed any more.
  void run();
  void stop();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lrun::inline core
