#pragma once

#include <csignal>
#include <initializer_list>

namespace lrun::launcher {

/// Signals that are blocked while this lives, to be read from a signalfd. One that came and was not read goes.
class BlockedSignals {
 public:
  BlockedSignals(std::initializer_list<int> numbers) {
    ::sigemptyset(&set_);
    for (const int number : numbers) ::sigaddset(&set_, number);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() {
    const timespec now{};
    while (::sigtimedwait(&set_, nullptr, &now) > 0) {
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

}  // namespace lrun::launcher
