#pragma once

#include <csignal>
#include <initializer_list>

#include "process/signal_set.h"

namespace lrun::launcher {

/// Signals that are blocked while this lives, to be read from a signalfd. One that came and was not read goes.
class BlockedSignals {
 public:
  BlockedSignals(std::initializer_list<int> numbers) : set_(signal_set(numbers)) {
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
  sigset_t set_;
  sigset_t before_{};
};

}  // namespace lrun::launcher
