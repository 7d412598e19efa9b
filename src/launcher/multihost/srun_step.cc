// In: the command of a srun that starts launchers. Out: the run's code, and what srun and the launchers print.
// start_through_srun() calls it.
#include "multihost/srun_step.h"

#include <fmt/format.h>

#include <csignal>
#include <optional>
#include <string_view>

#include "base/event_loop.h"
#include "base/user_error.h"
#include "process/exit_codes.h"
#include "process/helper_program.h"
#include "process/signal_set.h"
#include "remote/srun_lines.h"
#include "remote/step_outcome.h"
#include "supervise/signal_source.h"

namespace lrun::launcher {
namespace {

/// The signals that srun understands, less those that this lrun was started to ignore (nohup). They are blocked from
/// here on.
std::vector<int> taken_signals() {
  return block_unless_ignored({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM});
}

/// Longer than launchers that meet wait to tell each other why a node cannot start.
constexpr Duration kToEndByThemselves(15'000);

/// One srun.
class Step {
 public:
  Step(const std::string& path, const std::vector<std::string>& command, const WatchedStep& step, MessageSink& sink)
      : sink_(sink),
        needs_all_(step.needs_all),
        launcher_(step.launcher),
        reader_(step.token),
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
                         .errors = [this](std::string_view bytes) { show(lines_.pass_on(reader_.pass_on(bytes))); },
                         .ended =
                             [this](std::optional<ExitStatus> status) {
                               status_ = status.value_or(ExitStatus{});
                               loop_.stop();
                             },
                     });
  }

  int run() {
    loop_.run();
    sink_.print_lines(lines_.pass_on(reader_.rest()));
    sink_.print_lines(lines_.rest());
    if (was_given_up_) {
      const TaskEnd& task = *lines_.failed_task();
      sink_.print_error(
          UserError(fmt::format("lrun on {} ended before the run had begun: {}", task.nodes, task.how),
                    fmt::format("the lines above say why; '{}' has to start on every node of the job", launcher_)));
      return kExitRefused;
    }
    const bool started_none = !reader_.has_begun() && !reader_.code() && !lines_.failed_task();
    if (started_none && status_.kind == ExitStatus::Kind::kExited && status_.value != 0 && !was_signalled_) {
      sink_.print_error(
          UserError(fmt::format("srun failed before it had started lrun (exit {})", status_.value),
                    "where its job has ended, 'unset SLURM_JOB_ID', or write '--standalone', to run here"));
    }
    return reader_.code().value_or(status_.shell_code());
  }

 private:
  void pass_on(const ReceivedSignal& signal) {
    was_signalled_ = true;
    (void)program_->signal(signal.number);
  }

  /// A launcher that ends before all have met may never have started, and the others would wait for it.
  void show(const std::string& text) {
    sink_.print_lines(text);
    const bool may_hang = needs_all_ && lines_.failed_task() && !reader_.has_begun();
    if (may_hang && !limit_.armed()) limit_ = loop_.after(kToEndByThemselves, [this] { give_up(); });
  }
  void give_up() {
    if (reader_.has_begun()) return;
    was_given_up_ = true;
    (void)program_->signal(SIGTERM);
  }

  MessageSink& sink_;
  const bool needs_all_;
  const std::string& launcher_;
  EventLoop loop_;
  OutcomeReader reader_;
  SrunLines lines_;
  EventLoop::Timer limit_;
  bool was_given_up_ = false;
  bool was_signalled_ = false;
  SignalSource signals_;
  std::optional<HelperProgram> program_;
  ExitStatus status_;
};

}  // namespace

int watch_srun_step(const std::string& path, const std::vector<std::string>& command, const WatchedStep& step,
                    MessageSink& sink) {
  return Step(path, command, step, sink).run();
}

}  // namespace lrun::launcher
