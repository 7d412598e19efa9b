#include "process/pidfd.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace lrun {
namespace {

// P_PIDFD is newer than the enumeration of old headers; the kernel has it since 5.4.
constexpr auto kPidFd = static_cast<idtype_t>(3);

}  // namespace

bool PidFd::signal(int signal_number) const {
  if (status_) return false;
  // glibc 2.36 declares pidfd_send_signal without C linkage guards, hence the raw call.
  return ::syscall(SYS_pidfd_send_signal, fd_.get(), signal_number, nullptr, 0) == 0;
}

bool PidFd::signal_group(int signal_number) const {
  if (status_) return false;
  return ::kill(-pid_, signal_number) == 0;
}

bool PidFd::has_ended() const {
  siginfo_t info{};
  if (status_) return true;
  return ::waitid(kPidFd, static_cast<id_t>(fd_.get()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

std::optional<ExitStatus> PidFd::try_wait() {
  if (status_) return status_;
  siginfo_t info{};
  if (::waitid(kPidFd, static_cast<id_t>(fd_.get()), &info, WEXITED | WNOHANG) != 0) {
    throw std::system_error(errno, std::generic_category(), "waitid");
  }
  if (info.si_pid == 0) return std::nullopt;
  status_ = ExitStatus::from_siginfo(info);
  return status_;
}

}  // namespace lrun
