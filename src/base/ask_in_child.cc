#include "base/ask_in_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/clock.h"
#include "base/fd.h"

namespace lrun {
namespace {

constexpr char kWhole = '\0';  // behind a whole answer: what ends without it was cut off
constexpr Duration kReapLimit(1000);

int milliseconds_until(SteadyTime deadline) {
  const auto left = std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 1L << 30));
}

[[noreturn]] void answer(const std::function<std::string()>& question, const Fd& pipe, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && nothing >= 0; ++fd) ::dup2(nothing, fd);
  try {
    const std::string text = question() + kWhole;
    std::string_view left = text;
    if (write_all(pipe.get(), left) != 0) ::_exit(1);
  } catch (...) {
    ::_exit(1);  // no answer: the parent says so
  }
  ::_exit(0);
}

/// Everything the child writes until it ends or `deadline` passes; false when it passed.
bool read_all(const Fd& pipe, SteadyTime deadline, std::string& text) {
  while (true) {
    pollfd readable{pipe.get(), POLLIN, 0};
    const int ready = ::poll(&readable, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t length = ::read(pipe.get(), buffer, sizeof buffer);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(length));
  }
}

/// The signal that ended the child, 0 for none. Does not wait for one that stays in the kernel.
int reap(pid_t child, SteadyTime deadline) {
  int status = 0;
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (milliseconds_until(deadline) == 0) return 0;
    // Kernels without pidfds are asked again and again, for the moment between a closed pipe and the end.
    pollfd ended{pidfd.get(), POLLIN, 0};
    ::poll(pidfd ? &ended : nullptr, pidfd ? 1 : 0, pidfd ? milliseconds_until(deadline) : 1);
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

ChildAnswer ask_in_child(const std::function<std::string()>& question, Duration limit) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  ChildAnswer result;
  try {
    Pipe pipe = make_pipe();
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return {.error_number = errno};
    if (child == 0) answer(question, pipe.write, parent);
    pipe.write.reset();
    const bool in_time = read_all(pipe.read, deadline, result.text);
    const bool whole = result.text.ends_with(kWhole);
    if (!whole) ::kill(child, SIGKILL);  // our own unreaped child: its number cannot be another's
    result.signal_number = reap(child, std::chrono::steady_clock::now() + kReapLimit);
    result.end = !in_time ? ChildAnswer::End::kTimedOut
                 : whole  ? ChildAnswer::End::kAnswered
                          : ChildAnswer::End::kCrashed;
    if (whole) result.text.pop_back();
  } catch (const std::system_error& error) {
    return {.error_number = error.code().value()};
  }
  if (result.end != ChildAnswer::End::kAnswered) result.text.clear();
  if (result.end != ChildAnswer::End::kCrashed) result.signal_number = 0;
  return result;
}

}  // namespace lrun
