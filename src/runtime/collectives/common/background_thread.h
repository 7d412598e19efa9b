#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace lrun::detail {

/// Blocks all signals on this thread while it lives.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// Starts a thread that leaves all signals to the program's own threads.
template <typename Function>
std::thread start_background_thread(Function function) {
  const BlockedSignals blocked;
  return std::thread(std::move(function));
}

}  // namespace lrun::detail
