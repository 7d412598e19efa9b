#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/descendants.h"
#include "run/attempt.h"
#include "supervise/signal_source.h"
#include "support/blocked_signals.h"
#include "support/log_test_support.h"
#include "support/recording_sink.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {

/// Needs no answer.
class SilentObserver final : public RunObserver {
 public:
  void worker_ended(const FailureRecord&) override {}
  void settling(const FailureRecord&, Duration) override {}
  void stopping(const RunEnd&, const FailureRecord*, RunningWorkers) override {}
  void killing(int) override {}
  void terminal_came_back(int, int) override {}
  void suspended() override {}
  void resumed() override {}
};

/// One attempt with shells as workers.
class AttemptFixture : public ::testing::Test {
 protected:
  AttemptFixture() {
    become_subreaper();
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~AttemptFixture() override { attempt.reset(); }

  void plan_for(const std::string& script, int workers = 1) {
    LaunchRequest request = request_for_processes(std::to_string(workers));
    request.command = {"/bin/sh", "-c", script};
    plan = plan_of(request, cpu_node(16, "here"), environment);
  }

  /// Makes the attempt and starts its first workers.
  std::optional<StartFailure> start() {
    LogOptions options = log_options(*plan);
    options.stdout_fd = options.stderr_fd = console_end_.get();
    logs.emplace(loop, options);
    logs->set_events({.drained = [this](int) {
      if (attempt && attempt->supervised()) attempt->supervisor().check_finished();
      loop.stop();
    }});
    prepared = prepare_start(*plan, environment);
    Membership membership = sole_membership(*plan, 29'500);
    membership.num_nodes = nodes;
    membership.world_size *= nodes;
    attempt.emplace(Attempt::Surroundings{*plan, prepared, loop, *logs, observer, guard}, membership,
                    AttemptFiles(&folder, "attempt_0"));
    return attempt->start();
  }

  /// The same, and lets it run.
  void supervise() {
    ASSERT_FALSE(start());
    attempt->supervise({.finished =
                            [this] {
                              finished = true;
                              loop.stop();
                            },
                        .started = [this] { ++started; },
                        .start_failed =
                            [this](const StartFailure& failure) {
                              later_failure = failure;
                              loop.stop();
                            }});
    attempt->open_log_files();
  }

  void run_until(const std::function<bool()>& done) {
    const TimeLimit limit(loop);
    while (!done() && !limit.expired()) loop.run();
  }
  void run_until_finished() {
    run_until([this] { return finished; });
  }
  void stop() { attempt->supervisor().handle(StopRequested{}); }

  [[nodiscard]] std::string log_of(int rank, const std::string& file = "stdout.log") const {
    return content_of(temporary / "attempt_0" / std::to_string(rank) / file);
  }

  EventLoop loop;
  TemporaryFolder temporary;
  Folder folder = Folder::make(temporary.path());
  Environment environment = environment_with({{"PATH", "/usr/bin:/bin"}, {"TERM", "dumb"}});
  BlockedSignals blocked_{SIGCHLD};
  SignalSource children_{loop, {SIGCHLD}, [this](const ReceivedSignal&) {
                           if (!attempt || !attempt->supervised()) return;
                           reap_adopted([this](pid_t pid) { return attempt->supervisor().is_worker(pid); });
                           attempt->supervisor().check_finished();
                         }};
  Guard guard{{}, ::getppid()};
  SilentObserver observer;
  Pipe console = make_pipe();
  Fd console_end_ = std::move(console.write);
  Reader out{loop, std::move(console.read)};
  int nodes = 1;  ///< of the job, with as many workers each
  std::optional<LaunchPlan> plan;
  PreparedStart prepared;
  std::optional<LogRouter> logs;
  std::optional<Attempt> attempt;
  bool finished = false;
  int started = 0;
  std::optional<StartFailure> later_failure;
};

}  // namespace lrun::launcher
