#pragma once

#include <signal.h>

#include <ctime>

#include "process/signal_set.h"

namespace lrun::detail {

/// While it lives, writing to a connection that a peer has closed is an error on this thread, and not SIGPIPE: for
/// other people's code that writes without MSG_NOSIGNAL.
class PipeSignalAsError {
 public:
  PipeSignalAsError() {
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  PipeSignalAsError(const PipeSignalAsError&) = delete;
  PipeSignalAsError& operator=(const PipeSignalAsError&) = delete;
  ~PipeSignalAsError() {
    const timespec now{};
    if (!was_pending_) {
      while (::sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) continue;
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  const sigset_t pipe_ = signal_set({SIGPIPE});
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace lrun::detail
