// In: /proc/PID/syscall. Out: the system call that a thread waits in, by number and name. Called by process_look.
#include "inspect/system_call.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <charconv>

namespace lrun::launcher {
namespace {

struct KnownCall {
  long number;
  std::string_view name;
  bool descriptor_first;
};

/// System calls that a thread can wait in for long. Some architectures lack some of them.
constexpr KnownCall kCalls[] = {
    {SYS_read, "read", true},
    {SYS_write, "write", true},
    {SYS_readv, "readv", true},
    {SYS_writev, "writev", true},
    {SYS_pread64, "pread", true},
    {SYS_pwrite64, "pwrite", true},
    {SYS_recvfrom, "recv", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_recvmmsg, "recvmmsg", true},
    {SYS_sendto, "send", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_accept, "accept", true},
    {SYS_accept4, "accept", true},
    {SYS_connect, "connect", true},
    {SYS_ioctl, "ioctl", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_flock, "flock", true},
    {SYS_fsync, "fsync", true},
    {SYS_fdatasync, "fdatasync", true},
    {SYS_epoll_pwait, "epoll_wait", false},
    {SYS_ppoll, "poll", false},
    {SYS_pselect6, "select", false},
    {SYS_futex, "futex", false},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "clock_nanosleep", false},
    {SYS_restart_syscall, "restart_syscall", false},
    {SYS_wait4, "wait4", false},
    {SYS_waitid, "waitid", false},
    {SYS_rt_sigtimedwait, "sigwait", false},
    {SYS_rt_sigsuspend, "sigsuspend", false},
    {SYS_openat, "openat", false},
    {SYS_mmap, "mmap", false},
    {SYS_munmap, "munmap", false},
    {SYS_io_getevents, "io_getevents", false},
    {SYS_semtimedop, "semop", false},
    {SYS_msgrcv, "msgrcv", false},
    {SYS_sched_yield, "sched_yield", false},
#ifdef SYS_poll
    {SYS_poll, "poll", false},
#endif
#ifdef SYS_select
    {SYS_select, "select", false},
#endif
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, "epoll_wait", false},
#endif
#ifdef SYS_pause
    {SYS_pause, "pause", false},
#endif
#ifdef SYS_open
    {SYS_open, "open", false},
#endif
};

const KnownCall* find_call(long number) {
  for (const KnownCall& call : kCalls) {
    if (call.number == number) return &call;
  }
  return nullptr;
}

}  // namespace

std::optional<SystemCall> parse_system_call(std::string_view text) {
  SystemCall call;
  const char* const end = text.data() + text.size();
  const auto [after_number, bad_number] = std::from_chars(text.data(), end, call.number);
  if (bad_number != std::errc() || call.number < 0) return std::nullopt;
  const std::string_view rest(after_number, static_cast<std::size_t>(end - after_number));
  if (!rest.starts_with(" 0x")) return std::nullopt;
  const auto [after, bad] = std::from_chars(rest.data() + 3, end, call.first_argument, 16);
  if (bad != std::errc()) return std::nullopt;
  return call;
}

std::string system_call_name(long number) {
  const KnownCall* const call = find_call(number);
  return call != nullptr ? std::string(call->name) : fmt::format("system call {}", number);
}

bool waits_for_descriptor(long number) {
  const KnownCall* const call = find_call(number);
  return call != nullptr && call->descriptor_first;
}

}  // namespace lrun::launcher
