// In: a function to run in a forked child, and a time limit. Out: the text that it returned, or why there is none.
// Called by whatever asks code that may crash or hang: the GPU driver, the name service, file systems.
#include "base/child_query.h"

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

#include "base/clock.h"
#include "base/fd.h"

namespace lrun::inline core {
namespace {

constexpr char kWhole = '\0';  // ends a whole answer: one without it was cut off
constexpr Duration kReapLimit(1000);

int milliseconds_until(SteadyTime deadline) {
  const auto left = std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 1L << 30));
}

[[noreturn]] void answer(const std::function<std::string()>& query, const Fd& pipe, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before the death signal was armed
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && nothing >= 0; ++fd) ::dup2(nothing, fd);
  try {
    const std::string text = query() + kWhole;
    std::string_view left = text;
    if (write_all(pipe.get(), left) != 0) ::_exit(1);
  } catch (...) {
    ::_exit(1);  // the missing answer tells the parent
  }
  ::_exit(0);
}

/// The signal that ended the child, 0 for none. Does not wait for one that stays in the kernel.
int reap(pid_t child, SteadyTime deadline) {
  int status = 0;
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (milliseconds_until(deadline) == 0) return 0;
    // A kernel without pidfds is asked every millisecond: the pipe is closed already, so the end is near.
    pollfd ended{pidfd.get(), POLLIN, 0};
    ::poll(pidfd ? &ended : nullptr, pidfd ? 1 : 0, pidfd ? milliseconds_until(deadline) : 1);
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

/// The forked child and the pipe that its answer comes through. The destructor kills a child that still runs.
class ChildQuery::Child {
 public:
  /// \throws std::system_error  no process or pipe can be made.
  explicit Child(const std::function<std::string()>& query) {
    Pipe pipe = make_pipe();
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) answer(query, pipe.write, parent);
    pipe_ = std::move(pipe.read);
  }
  ~Child() {
    if (pid_ > 0) (void)end(false);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Turns readable when more of the answer has come, and when the child has ended.
  [[nodiscard]] int fd() const { return pipe_.get(); }

  /// \return false at the end of the answer. May block unless fd() is readable.
  bool read_some() {
    char buffer[4096];
    const ssize_t length = ::read(pipe_.get(), buffer, sizeof buffer);
    if (length < 0 && errno == EINTR) return true;
    if (length <= 0) return false;
    text_.append(buffer, static_cast<std::size_t>(length));
    return true;
  }

  /// \return false when the deadline passed.
  bool read_all(SteadyTime deadline) {
    while (true) {
      pollfd readable{pipe_.get(), POLLIN, 0};
      const int ready = ::poll(&readable, 1, milliseconds_until(deadline));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      if (!read_some()) return true;
    }
  }

  /// Kills the child unless its answer is whole, and reaps it. \param in_time  false: the limit has passed.
  ChildAnswer end(bool in_time) {
    const bool whole = text_.ends_with(kWhole);
    if (!whole) ::kill(pid_, SIGKILL);  // our own unreaped child: its number cannot be another's
    const int signal_number = reap(std::exchange(pid_, 0), std::chrono::steady_clock::now() + kReapLimit);
    if (!in_time) return {.end = ChildAnswer::End::kTimedOut};
    if (!whole) return {.end = ChildAnswer::End::kCrashed, .signal_number = signal_number};
    text_.pop_back();
    return {.end = ChildAnswer::End::kAnswered, .text = std::move(text_)};
  }

 private:
  Fd pipe_;
  pid_t pid_ = 0;
  std::string text_;
};

ChildAnswer query_in_child(const std::function<std::string()>& query, Duration limit) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  try {
    ChildQuery::Child child(query);
    const bool in_time = child.read_all(deadline);
    return child.end(in_time);
  } catch (const std::system_error& error) {
    return {.error_number = error.code().value()};
  }
}

ChildQuery::ChildQuery(EventLoop& loop, const std::function<std::string()>& query, Duration limit,
                       std::function<void(const ChildAnswer&)> answered)
    : answered_(std::move(answered)) {
  try {
    child_ = std::make_unique<Child>(query);
  } catch (const std::system_error& error) {
    // Reported by the loop, as every other end is: the caller has not got this object yet.
    limit_ = loop.after(Duration::zero(), [this, number = error.code().value()] { report({.error_number = number}); });
    return;
  }
  readable_ = loop.on_readable(child_->fd(), [this] {
    if (!child_->read_some()) report(child_->end(true));
  });
  limit_ = loop.after(limit, [this] { report(child_->end(false)); });
}

ChildQuery::~ChildQuery() = default;

void ChildQuery::report(const ChildAnswer& answer) {
  readable_.cancel();
  limit_.cancel();
  child_.reset();  // its pipe: the owner may keep this object
  const auto answered = std::exchange(answered_, nullptr);
  answered(answer);  // may destroy this object
}

}  // namespace lrun::inline core
