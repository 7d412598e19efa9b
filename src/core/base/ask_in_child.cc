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
#include <utility>

#include "base/answering_child.h"
#include "base/clock.h"

namespace lrun::inline core {
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

/// \return false when the deadline passed.
bool read_all(AnsweringChild& child, SteadyTime deadline) {
  while (true) {
    pollfd readable{child.fd(), POLLIN, 0};
    const int ready = ::poll(&readable, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    if (!child.read_some()) return true;
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

AnsweringChild::AnsweringChild(const std::function<std::string()>& question) {
  Pipe pipe = make_pipe();
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child_ == 0) answer(question, pipe.write, parent);
  pipe_ = std::move(pipe.read);
}

AnsweringChild::~AnsweringChild() {
  if (child_ > 0) (void)end(false);
}

bool AnsweringChild::read_some() {
  char buffer[4096];
  const ssize_t length = ::read(pipe_.get(), buffer, sizeof buffer);
  if (length < 0 && errno == EINTR) return true;
  if (length <= 0) return false;
  text_.append(buffer, static_cast<std::size_t>(length));
  return true;
}

ChildAnswer AnsweringChild::end(bool in_time) {
  const bool whole = text_.ends_with(kWhole);
  if (!whole) ::kill(child_, SIGKILL);  // our own unreaped child: its number cannot be another's
  const int signal_number = reap(std::exchange(child_, 0), std::chrono::steady_clock::now() + kReapLimit);
  if (!in_time) return {.end = ChildAnswer::End::kTimedOut};
  if (!whole) return {.end = ChildAnswer::End::kCrashed, .signal_number = signal_number};
  text_.pop_back();
  return {.end = ChildAnswer::End::kAnswered, .text = std::move(text_)};
}

ChildAnswer ask_in_child(const std::function<std::string()>& question, Duration limit) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  try {
    AnsweringChild child(question);
    const bool in_time = read_all(child, deadline);
    return child.end(in_time);
  } catch (const std::system_error& error) {
    return {.error_number = error.code().value()};
  }
}

}  // namespace lrun::inline core
