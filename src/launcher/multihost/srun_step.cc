#include "multihost/srun_step.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>

#include "base/event_loop.h"
#include "base/fd.h"
#include "process/spawn.h"
#include "remote/step_outcome.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {
namespace {

constexpr Duration kLookAtStep(50);
constexpr Duration kToDrainStep(1000);  // what a child of srun may hold its stderr for

/// Those that ask srun for something, but for what this lrun was started to ignore (nohup). They are blocked from here
/// on.
std::vector<int> taken_signals() {
  std::vector<int> taken;
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    ::sigaddset(&set, number);
    taken.push_back(number);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return taken;
}

/// One srun.
class Step {
 public:
  Step(const std::string& path, const std::vector<std::string>& command, const std::string& token, MessageSink& sink)
      : sink_(sink),
        reader_(token),
        signals_(loop_, taken_signals(), [this](const ReceivedSignal& signal) { pass_on(signal); }) {
    const SpawnDefaults defaults = SpawnDefaults::of_this_process();
    ::signal(SIGPIPE, SIG_IGN);  // a closed stderr is no reason to end
    start(path, command, defaults);
    errors_readable_ = loop_.on_readable(errors_.get(), [this] { read(); });
    watch();
  }

  int run() {
    loop_.run();
    sink_.print_lines(reader_.rest());
    return reader_.code().value_or(process_->status()->shell_code());
  }

 private:
  void start(const std::string& path, const std::vector<std::string>& command, const SpawnDefaults& defaults) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    Pipe pipe = make_pipe();
    SpawnResult result = spawn(
        {.path = path.c_str(), .argv = argv.data(), .envp = environ, .standard_error = pipe.write.get()}, defaults);
    if (!result.ok()) {
      throw std::system_error(result.error_number, std::generic_category(), "cannot execute '" + path + "'");
    }
    process_ = std::move(result.child);
    errors_ = std::move(pipe.read);
    set_nonblocking(errors_.get());
  }

  void watch() {
    if (process_->poll_fd() >= 0) {
      ended_ = loop_.on_readable(process_->poll_fd(), [this] { look(); });
      return;
    }
    timer_ = loop_.after(kLookAtStep, [this] {
      look();
      if (!process_->status()) watch();
    });
  }

  void look() {
    if (!process_->try_wait()) return;
    ended_.cancel();
    timer_ = loop_.after(kToDrainStep, [this] { loop_.stop(); });
    if (!errors_) loop_.stop();
  }

  void read() {
    char buffer[16384];
    const ssize_t count = ::read(errors_.get(), buffer, sizeof buffer);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count > 0) return sink_.print_lines(reader_.pass_on({buffer, static_cast<std::size_t>(count)}));
    errors_readable_.cancel();
    errors_.reset();
    if (process_->status()) loop_.stop();
  }

  void pass_on(const ReceivedSignal& signal) { (void)process_->signal(signal.number); }

  MessageSink& sink_;
  EventLoop loop_;
  OutcomeReader reader_;
  SignalSource signals_;
  std::optional<PidFd> process_;
  Fd errors_;
  EventLoop::Watch errors_readable_;
  EventLoop::Watch ended_;
  EventLoop::Timer timer_;
};

}  // namespace

int watch_srun_step(const std::string& path, const std::vector<std::string>& command, const std::string& token,
                    MessageSink& sink) {
  return Step(path, command, token, sink).run();
}

}  // namespace lrun::launcher
