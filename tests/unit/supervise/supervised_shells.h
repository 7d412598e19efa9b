#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/descendants.h"
#include "supervise/signal_source.h"
#include "supervise/supervisor.h"
#include "support/blocked_signals.h"
#include "support/log_test_support.h"
#include "support/sh_workers.h"

namespace lrun::launcher {

/// Writes down what it gets.
class RecordingObserver final : public RunObserver {
 public:
  void worker_ended(const FailureRecord& record) override { add("ended " + std::to_string(record.rank)); }
  void settling(const FailureRecord& failed, Duration) override { add("settling " + std::to_string(failed.rank)); }
  void stopping(const RunEnd&, const FailureRecord* cause, RunningWorkers others) override {
    add("stopping " + std::to_string(others.workers) + ", cause " + (cause ? std::to_string(cause->rank) : "none"));
  }
  void killing(int others) override { add("killing " + std::to_string(others)); }
  void terminal_came_back(int, int) override {}
  void suspended() override { add("suspended"); }
  void resumed() override { add("resumed"); }

  std::vector<std::string> calls;
  std::function<void()> called;

 private:
  void add(std::string call) {
    calls.push_back(std::move(call));
    if (called) called();
  }
};

/// Shells under a supervisor.
class SupervisedShells : public ::testing::Test {
 protected:
  SupervisedShells() {
    facts.records.host = "here";
    become_subreaper();
    logs.set_events({.drained = [this](int) {
      if (supervisor_) supervisor_->check_finished();
    }});
    observer.called = [this] { loop.stop(); };
  }
  ~SupervisedShells() override { supervisor_.reset(); }

  /// Starts a worker a script and supervises them.
  Supervisor& supervise(const std::vector<std::string>& scripts, GradualStart start = {}) {
    node_ = node_with(scripts.size() + static_cast<std::size_t>(start.left));
    start_shells(loop, group, logs, scripts);
    supervisor_.emplace(loop, group, node_, logs, observer, facts);
    supervisor_->begin(
        [this] {
          finished = true;
          loop.stop();
        },
        std::move(start));
    return *supervisor_;
  }

  void run_until(const std::function<bool()>& done) {
    const TimeLimit limit(loop);
    while (!done() && !limit.expired()) loop.run();
  }
  void run_until_finished() {
    run_until([this] { return finished; });
  }
  /// All of them have printed 'ready'.
  void run_until_ready(std::size_t workers) {
    out.read_until([workers](const std::string& text) {
      std::size_t count = 0;
      for (std::size_t at = 0; (at = text.find("ready\n", at)) != std::string::npos; ++at) ++count;
      return count >= workers;
    });
  }

  /// Does the same as the launcher when a child has ended.
  void child_ended() {
    reap_adopted([this](pid_t pid) {
      return std::any_of(group.workers().begin(), group.workers().end(),
                         [pid](const Worker& worker) { return worker.process.pid() == pid; });
    });
    if (supervisor_) supervisor_->check_finished();
  }

  EventLoop loop;
  BlockedSignals blocked_{SIGCHLD};
  SignalSource children_{loop, {SIGCHLD}, [this](const ReceivedSignal&) { child_ended(); }};
  Pipe console = make_pipe();
  Fd console_end_ = std::move(console.write);
  Reader out{loop, std::move(console.read)};
  std::optional<Supervisor> supervisor_;
  LogRouter logs{loop, {.files = false, .stdout_fd = console_end_.get(), .stderr_fd = console_end_.get()}};
  WorkerGroup group;
  NodePlan node_;
  RecordingObserver observer;
  Supervisor::Facts facts{.grace = Duration(20'000)};
  bool finished = false;
};

}  // namespace lrun::launcher
