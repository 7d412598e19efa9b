#include "supervise/signal_source.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "process/signal_set.h"

namespace lrun::launcher {

SignalSource::SignalSource(EventLoop& loop, const std::vector<int>& signal_numbers,
                           std::function<void(const ReceivedSignal&)> arrived)
    : arrived_(std::move(arrived)) {
  const sigset_t set = signal_set(signal_numbers);
  fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
  watch_ = loop.on_readable(fd_.get(), [this] { read_all(); });
}

void SignalSource::read_all() {
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    arrived_({static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid), info.ssi_int});
  }
}

}  // namespace lrun::launcher
