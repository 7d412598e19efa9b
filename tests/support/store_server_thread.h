#pragma once

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "store/server.h"

namespace lrun::launcher {

/// A StoreServer on an event loop of its own, in a thread of the test.
class StoreServerThread {
 public:
  explicit StoreServerThread(StoreServerOptions options = {}) {
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    server_.emplace(loop_, std::move(options));
    port_ = server_->port();
    commands_ = loop_.on_readable(wake_.read.get(), [this] { run_commands(); });
    thread_ = std::thread([this] { loop_.run(); });
  }
  StoreServerThread(const StoreServerThread&) = delete;
  StoreServerThread& operator=(const StoreServerThread&) = delete;

  ~StoreServerThread() {
    in_loop([this](StoreServer&) { loop_.stop(); });
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

  /// Calls `function(server)` on the thread of the loop and waits for it.
  void in_loop(const std::function<void(StoreServer&)>& function) {
    // Shared: the loop is still inside set_value() when this thread goes on.
    const auto done = std::make_shared<std::promise<void>>();
    {
      const std::lock_guard lock(mutex_);
      calls_.emplace_back([this, done, &function] {
        function(*server_);
        done->set_value();
      });
    }
    if (::write(wake_.write.get(), "x", 1) != 1) std::abort();
    done->get_future().wait();
  }

  std::size_t num_clients() {
    std::size_t count = 0;
    in_loop([&count](const StoreServer& server) { count = server.num_clients(); });
    return count;
  }

  /// Lines that the server logged so far.
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  void run_commands() {
    char byte = 0;
    if (::read(wake_.read.get(), &byte, 1) != 1) std::abort();
    std::vector<std::function<void()>> calls;
    {
      const std::lock_guard lock(mutex_);
      calls.swap(calls_);
    }
    for (const auto& call : calls) call();
  }

  EventLoop loop_;
  Pipe wake_ = make_pipe();
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
  std::vector<std::string> log_;
  std::optional<StoreServer> server_;
  std::uint16_t port_ = 0;
  EventLoop::Watch commands_;
  std::thread thread_;
};

}  // namespace lrun::launcher
