#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/own_signals.h"
#include "process/descendants.h"
#include "run/node_launcher.h"
#include "run/worker_output.h"
#include "support/blocked_signals.h"
#include "support/log_test_support.h"
#include "support/recording_sink.h"
#include "unit/plan/planning.h"

namespace lrun::launcher {

/// Runs shells as the workers of this node, in this process: with a sink that records, and without the program lrun.
class ShellRun : public ::testing::Test {
 protected:
  ShellRun() {
    become_subreaper();
    ::signal(SIGPIPE, SIG_IGN);
    console_watch_ = loop.on_readable(console_.read.get(), [this] { read_console(); });
  }

  /// A plan for a shell with this script, a worker a device.
  [[nodiscard]] LaunchPlan plan_for(const std::string& script, int workers = 1) const {
    LaunchRequest request = request_for_processes(std::to_string(workers));
    request.command = {"/bin/sh", "-c", script};
    LaunchPlan plan = plan_of(request, cpu_node(16, "here"), environment);
    plan.grace.value = Duration(20'000);
    return plan;
  }

  /// Makes all that a run needs, which keeps references to the plan.
  NodeLauncher& prepare(const LaunchPlan& wanted) {
    const LaunchPlan& plan = plan_.emplace(wanted);
    LogOptions options = log_options(plan);
    options.stdout_fd = options.stderr_fd = console_.write.get();
    logs.emplace(loop, options);
    record.emplace(loop, plan, environment, sink);
    if (job != nullptr) {
      store.emplace(plan, [](const Membership&) { return nullptr; });
    } else {
      store.emplace(loop, plan, 64U);
    }
    launcher.emplace(plan,
                     NodeLauncher::Surroundings{.loop = loop,
                                                .environment = environment,
                                                .guard = *guard,
                                                .store = *store,
                                                .logs = *logs,
                                                .record = *record,
                                                .output = {sink},
                                                .clock = clock,
                                                .look = look},
                     NodeLauncher::Facts{.program = plan.argv.front(),
                                         .start = prepare_start(plan, environment),
                                         .job = job,
                                         .membership = membership,
                                         .notice = notice ? &*notice : nullptr});
    return *launcher;
  }

  Verdict run(const LaunchPlan& plan) {
    const TimeLimit limit(loop);
    return prepare(plan).run();
  }

  /// Calls `action` once when the workers have printed `text` so many times.
  void when_printed(const std::string& text, std::function<void()> action, int times = 1) {
    awaited_.push_back({text, times, std::move(action)});
  }
  /// As if the guard passed the signal on.
  void forward(int signal_number) { launcher->signal_received({forwarded_signal(), guard->pid(), signal_number}); }
  /// As if somebody sent it to the launcher itself.
  void send(int signal_number) { launcher->signal_received({signal_number, 1, 0}); }

  [[nodiscard]] std::filesystem::path run_folder() const { return state.path() / "demo"; }
  /// result.json of the run.
  [[nodiscard]] nlohmann::json result() const {
    return nlohmann::json::parse(content_of(run_folder() / "result.json"), nullptr, false);
  }
  /// The names of its events.
  [[nodiscard]] std::vector<std::string> events() const {
    std::vector<std::string> names;
    std::string lines = content_of(run_folder() / "events.jsonl");
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = lines.find('\n', at);
      names.push_back(nlohmann::json::parse(lines.substr(at, end - at)).at("event"));
      at = end + 1;
    }
    return names;
  }

  EventLoop loop;
  lrun::test::TemporaryFolder state;
  Environment environment =
      environment_with({{"PATH", "/usr/bin:/bin"}, {"LRUN_STATE", state.path().string()}, {"TERM", "dumb"}});
  BlockedSignals blocked_{SIGCHLD, forwarded_signal()};
  std::optional<Guard> guard{std::in_place, RunGuardOptions{}, ::getppid()};
  Clock clock;
  JobMember* job = nullptr;  ///< with other nodes, one of which hosts the workers' store
  Membership membership;
  LookAtRanks look = [this](EventLoop&, const std::vector<RankProcess>& processes, LookKind, SeenRanks seen) {
    ++looks;
    auto timer = std::make_shared<EventLoop::Timer>();
    *timer = loop.after(Duration(0), [processes, seen = std::move(seen)] {
      std::vector<StackSample> samples;
      for (const RankProcess& process : processes) samples.push_back({.rank = process.rank, .pid = process.pid});
      seen(samples, "");
    });
    return timer;
  };
  int looks = 0;
  RecordingSink sink;
  std::string printed;  ///< by the workers
  std::optional<LaunchPlan> plan_;
  std::optional<LogRouter> logs;
  std::optional<RunRecord> record;
  std::optional<WorkersStore> store;
  std::optional<NoticeMonitor> notice;
  std::optional<NodeLauncher> launcher;

  void stop_reading_console() { console_watch_.cancel(); }
  void close_console() {
    console_watch_.cancel();
    console_.read.reset();
  }

 private:
  struct Awaited {
    std::string text;
    int times;
    std::function<void()> action;
  };

  [[nodiscard]] int times_printed(const std::string& text) const {
    int count = 0;
    for (std::size_t at = 0; (at = printed.find(text, at)) != std::string::npos; at += text.size()) ++count;
    return count;
  }

  void read_console() {
    char bytes[4096];
    const ssize_t count = ::read(console_.read.get(), bytes, sizeof bytes);
    if (count > 0) printed.append(bytes, static_cast<std::size_t>(count));
    for (Awaited& one : awaited_) {
      if (one.action && times_printed(one.text) >= one.times) std::exchange(one.action, nullptr)();
    }
  }

  Pipe console_ = make_pipe();
  EventLoop::Watch console_watch_;
  std::vector<Awaited> awaited_;
};

inline constexpr const char* kObeysTerm = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done";
inline constexpr const char* kIgnoresSignals = "trap '' TERM INT; echo ready; while :; do sleep 0.01; done";

}  // namespace lrun::launcher
