#include "multihost/srun_step.h"

#include <csignal>
#include <optional>
#include <string_view>

#include "base/event_loop.h"
#include "process/helper_program.h"
#include "process/signal_set.h"
#include "remote/step_outcome.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {
namespace {

/// The signals that srun understands, less those that this lrun was started to ignore (nohup). They are blocked from
/// here on.
std::vector<int> taken_signals() {
  return block_unless_ignored({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM});
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
    using Stream = HelperRequest::Stream;
    program_.emplace(loop_,
                     HelperRequest{.path = path,
                                   .argv = command,
                                   .input = Stream::kInherited,
                                   .output = Stream::kInherited,
                                   .defaults = defaults,
                                   .left_pipes = Duration(1000)},
                     HelperProgram::Events{
                         .errors = [this](std::string_view bytes) { sink_.print_lines(reader_.pass_on(bytes)); },
                         .ended =
                             [this](std::optional<ExitStatus> status) {
                               status_ = status.value_or(ExitStatus{});
                               loop_.stop();
                             },
                     });
  }

  int run() {
    loop_.run();
    sink_.print_lines(reader_.rest());
    return reader_.code().value_or(status_.shell_code());
  }

 private:
  void pass_on(const ReceivedSignal& signal) { (void)program_->signal(signal.number); }

  MessageSink& sink_;
  EventLoop loop_;
  OutcomeReader reader_;
  SignalSource signals_;
  std::optional<HelperProgram> program_;
  ExitStatus status_;
};

}  // namespace

int watch_srun_step(const std::string& path, const std::vector<std::string>& command, const std::string& token,
                    MessageSink& sink) {
  return Step(path, command, token, sink).run();
}

}  // namespace lrun::launcher
