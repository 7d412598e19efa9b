// In: the command of a program that works for lrun. Out: what it prints, and how it ended, as events of the loop.
// Called by ToolRun (debuggers, py-spy, eu-stack, lrun itself), by the head (ssh) and in a batch script (srun).
// The only file that includes Boost.Process, which takes five seconds to compile.
#include "process/helper_program.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#if !__GLIBC_PREREQ(2, 34)
// Boost.Process calls it wherever the kernel's headers know it, also with a C library that does not.
inline int close_range(unsigned int first, unsigned int last, int flags) {
  return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}
#endif

#define BOOST_PROCESS_V2_HEADER_ONLY 1
#define BOOST_PROCESS_USE_STD_FS 1
#include <boost/asio/io_context.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/optional.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <boost/type_traits/decay.hpp>
#include <boost/type_traits/is_convertible.hpp>

#include "process/signal_set.h"

namespace lrun::inline core {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using boost::system::error_code;
using Kind = HelperRequest::Stream;

constexpr std::size_t kReadBytes = std::size_t{64} * 1024;
constexpr Duration kLookWithoutPidfd(20);
constexpr Duration kReapLimit(1000);
constexpr int kNotExecuted = 127;

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

/// No signal may run a handler of ours in the child before it has a session of its own.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// An initializer of Boost.Process: what the child does between fork and exec, when its streams are in their places.
struct OwnSession {
  const SpawnDefaults& defaults;
  pid_t parent;

  template <class Launcher>
  error_code on_exec_setup(Launcher& /*launcher*/, const std::filesystem::path& /*program*/,
                           const char* const*& /*argv*/) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setsid();
    if (::getppid() != parent) ::_exit(kNotExecuted);  // the launcher died before the death signal was armed
    defaults.restore();
    // Boost's own closing leaves the gaps between the descriptors that it keeps. Since Linux 5.11.
    ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    const sigset_t none = signal_set({});
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return {};
  }

  /// The child must not run the exit handlers of this process, which Boost's exit() would. Boost 1.81 looks for this
  /// function with a further argument and calls it without: it has to be there twice.
  template <class Launcher>
  void on_exec_error(Launcher& /*launcher*/, const std::filesystem::path& /*program*/, const char* const*& /*argv*/,
                     const error_code& /*error*/) const {
    ::_exit(kNotExecuted);
  }
  template <class Launcher>
  void on_exec_error(Launcher& /*launcher*/, const error_code& /*again*/, const std::filesystem::path& /*program*/,
                     const char* const*& /*argv*/, const error_code& /*error*/) const {
    ::_exit(kNotExecuted);
  }
};

/// A standard stream of the child: a new pipe, whose other end `pipe` becomes, /dev/null, or ours.
template <class Binding>
Binding binding(Kind kind, auto& pipe) {
  if (kind == Kind::kPipe) return Binding(pipe);
  return kind == Kind::kNothing ? Binding(nullptr) : Binding();
}

void check(const error_code& error, const std::string& path) {
  if (error) throw std::system_error(error.value(), std::generic_category(), "cannot execute '" + path + "'");
}

struct Started {
  pid_t pid = 0;
  Fd input;
  Fd output;
  Fd errors;
};

/// Starts a program by Boost's default launcher, which forks, and whose child reports why it could not exec. A context
/// of its own, that nothing else is registered in, keeps the loop's descriptors out of what Asio does in the child.
Started start(const HelperRequest& request) {
  asio::io_context context;
  asio::writable_pipe input(context);
  asio::readable_pipe output(context);
  asio::readable_pipe errors(context);
  process::process_stdio streams{binding<decltype(process::process_stdio::in)>(request.input, input),
                                 binding<decltype(process::process_stdio::out)>(request.output, output),
                                 binding<decltype(process::process_stdio::err)>(request.errors, errors)};
  // Boost 1.81 looks at these errors nowhere, and its ends of the pipes stay open in the program.
  for (const auto& [error, fd] : {std::pair(streams.in.ec, streams.in.fd), std::pair(streams.out.ec, streams.out.fd),
                                  std::pair(streams.err.ec, streams.err.fd)}) {
    check(error, request.path);
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  std::vector<const char*> argv = pointers_to(request.argv);
  process::posix::default_launcher launcher;
  std::vector<const char*> environment;
  if (request.environment) {
    environment = pointers_to(*request.environment);
    launcher.env = environment.data();
  }
  const pid_t parent = ::getpid();
  const SignalsBlocked blocked;
  error_code error;
  try {
    launcher(context.get_executor(), error, request.path, argv.data(), streams, OwnSession{request.defaults, parent})
        .detach();
  } catch (...) {
    if (::getpid() != parent) ::_exit(kNotExecuted);
    // The program runs, and only the pidfd that Boost opens for it is missing. Else there is no program.
    if (launcher.pid <= 0) throw;
  }
  if (error && launcher.pid > 0) ::waitpid(launcher.pid, nullptr, 0);  // it is past its _exit: no wait worth a deadline
  check(error, request.path);
  Started started{.pid = launcher.pid};
  for (const auto& [pipe, end] : {std::pair(&output, &started.output), std::pair(&errors, &started.errors)}) {
    if (pipe->is_open()) *end = Fd(pipe->release());
  }
  if (input.is_open()) started.input = Fd(input.release());
  for (const Fd* const end : {&started.input, &started.output, &started.errors}) {
    if (*end) set_nonblocking(end->get());
  }
  return started;
}

/// Boost 1.81 throws exceptions that are not the standard library's, where it cannot make its pipes.
Started start_or_explain(const HelperRequest& request) {
  try {
    return start(request);
  } catch (const boost::system::system_error& error) {
    throw std::system_error(error.code().value(), std::generic_category(), "cannot execute '" + request.path + "'");
  }
}

}  // namespace

HelperProgram::HelperProgram(EventLoop& loop, const HelperRequest& request, Events events)
    : loop_(loop),
      events_(std::move(events)),
      ends_its_group_(request.ends_its_group),
      left_pipes_(request.left_pipes),
      renews_left_pipes_(request.renews_left_pipes) {
  Started started = start_or_explain(request);
  child_ = request.defaults.use_pidfds ? PidFd::of_child(started.pid) : PidFd(started.pid, Fd());
  input_ = std::move(started.input);
  output_.fd = std::move(started.output);
  errors_.fd = std::move(started.errors);
  watch_output();
  if (errors_.fd) errors_.readable = loop_.on_readable(errors_.fd.get(), [this] { read_errors_now(); });
  watch_child();
}

HelperProgram::~HelperProgram() {
  if (!child_ || ended_) return;
  child_->signal_group(SIGKILL);
  if (!child_->wait_until_ended(kReapLimit)) return;
  try {
    (void)child_->try_wait();
  } catch (const std::system_error&) {  // it was reaped elsewhere in this process
  }
}

void HelperProgram::watch_output() {
  if (!output_.fd) return;
  output_.readable = loop_.on_readable(output_.fd.get(), [this] { read_from(output_, events_.output); });
}

void HelperProgram::pause_output(bool paused) {
  if (std::exchange(paused_, paused) == paused || !output_.fd) return;
  if (paused) return output_.readable.cancel();
  watch_output();
  if (ended_) drain();
}

void HelperProgram::read_from(Stream& stream, const std::function<void(std::string_view)>& read) {
  if (!stream.fd) return;
  char bytes[kReadBytes];
  const ssize_t count = ::read(stream.fd.get(), bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    if (ended_ && renews_left_pipes_) drain();
    if (read) read({bytes, static_cast<std::size_t>(count)});
    return;
  }
  stream.close();
  finish_when_all_is_read();
}

/// Not by Boost's wait: at the end of a child it waits without a deadline, and of one that a tracer holds for ever.
void HelperProgram::watch_child() {
  if (child_->poll_fd() >= 0) {
    exit_ = loop_.on_readable(child_->poll_fd(), [this] { look_at_child(); });
    return;
  }
  look_ = loop_.after(kLookWithoutPidfd, [this] { look_at_child(); });
}

void HelperProgram::look_at_child() {
  // While the program is unreaped, the number of its group cannot be another's.
  if (ends_its_group_ && child_->has_ended()) child_->signal_group(SIGKILL);
  try {
    status_ = child_->try_wait();
    if (!status_) {
      if (!exit_.armed()) watch_child();
      return;
    }
  } catch (const std::system_error&) {
    status_ = std::nullopt;  // the launcher's reaping of orphans came first
  }
  ended_ = true;
  exit_.cancel();
  drain();
  finish_when_all_is_read();
}

/// Output that waits while it is paused is not lost: it is read when it goes on.
void HelperProgram::drain() {
  drain_ = loop_.after(left_pipes_, [this] {
    errors_.close();
    if (!paused_) output_.close();
    finish_when_all_is_read();
  });
}

void HelperProgram::finish_when_all_is_read() {
  if (!ended_ || output_.fd || errors_.fd || !events_.ended) return;
  drain_.cancel();
  const auto ended = std::exchange(events_.ended, nullptr);
  ended(status_);  // may destroy this object
}

}  // namespace lrun::inline core
