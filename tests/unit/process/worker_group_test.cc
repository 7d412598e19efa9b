#include "process/worker_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <span>
#include <vector>

namespace lrun {
namespace {

std::vector<WorkerCommand> shell_workers(const std::vector<std::string>& scripts) {
  std::vector<WorkerCommand> commands;
  for (const std::string& script : scripts) {
    const int rank = static_cast<int>(commands.size());
    commands.push_back({rank, rank, {"sh", "-c", script}, {"RANK=" + std::to_string(rank)}});
  }
  return commands;
}

TEST(WorkerGroup, TellsEveryEndOnceWithItsStatus) {
  EventLoop loop;
  WorkerGroup group;
  ASSERT_EQ(group.start(loop, {.path = "/bin/sh", .shared_environment = {"PATH=/bin:/usr/bin"}},
                        shell_workers({"exit $RANK", "exit $RANK", "kill -9 $$"}), SpawnDefaults::of_this_process()),
            std::nullopt);
  std::vector<ExitStatus> ends(3);
  group.on_ended(
      [&](Worker& worker, const ExitStatus& status) { ends[static_cast<std::size_t>(worker.rank)] = status; });
  loop.run();  // returns when nobody is watched any more
  EXPECT_EQ(group.running(), 0);
  EXPECT_EQ(ends[0], (ExitStatus{ExitStatus::Kind::kExited, 0}));
  EXPECT_EQ(ends[1], (ExitStatus{ExitStatus::Kind::kExited, 1}));
  EXPECT_EQ(ends[2], (ExitStatus{ExitStatus::Kind::kSignaled, SIGKILL}));
}

TEST(WorkerGroup, LeavesNoWorkerWhenOneCannotBeStarted) {
  {
    EventLoop loop;
    WorkerGroup group;
    const auto failure = group.start(loop, {.path = "/nonexistent/program"}, shell_workers({"x", "x"}),
                                     SpawnDefaults::of_this_process());
    ASSERT_TRUE(failure);
    EXPECT_TRUE(failure->exec_failed);
    EXPECT_EQ(failure->error_number, ENOENT);
    EXPECT_TRUE(group.workers().empty());
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(WorkerGroup, TakesMoreWorkersAndKeepsNoneWhenOneOfThemCannotBeStarted) {
  EventLoop loop;
  WorkerGroup group;
  std::vector<WorkerCommand> commands = shell_workers({"exec sleep 1000", "exec sleep 1000", "true"});
  commands[2].path = "/nonexistent/program";
  const auto start = [&](std::size_t from, std::size_t count) {
    return group.start(loop, {.path = "/bin/sh"}, std::span(commands).subspan(from, count),
                       SpawnDefaults::of_this_process());
  };
  ASSERT_EQ(start(0, 1), std::nullopt);
  ASSERT_EQ(start(1, 1), std::nullopt);
  EXPECT_EQ(group.workers().at(1).rank, 1);
  const pid_t first = group.workers().at(0).process.pid();
  const auto failure = start(2, 1);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->local_rank, 2);
  EXPECT_TRUE(group.workers().empty());
  EXPECT_EQ(::kill(first, 0), -1) << "a worker outlived the failure";
}

/// Starts shells that wait for a byte, as long as it is good.
class WaitingSpawner final : public Spawner {
 public:
  [[nodiscard]] std::size_t at_a_time() const override { return 8; }
  std::vector<PidFd> start(std::span<const SpawnRequest> requests) override {
    std::vector<PidFd> processes;
    for (SpawnRequest request : requests) {
      request.standard_input = go_.read.get();
      if (is_good) processes.push_back(*spawn(request, SpawnDefaults::of_this_process()).child);
    }
    waiting_ = processes.size();
    return processes;
  }
  void begin() override {
    EXPECT_EQ(write_all(go_.write.get(), std::string(waiting_, '\n')), 0);
    ++begins;
  }

  bool is_good = true;
  int begins = 0;

 private:
  Pipe go_ = make_pipe();
  std::size_t waiting_ = 0;
};

TEST(WorkerGroup, LetsWorkersThatAreStartedTogetherBeginOnceTheyAreWatched) {
  EventLoop loop;
  WorkerGroup group;
  WaitingSpawner spawner;
  const GroupCommand command{.path = "/bin/sh", .spawner = &spawner};
  const std::vector<WorkerCommand> commands = shell_workers({"read go; exec sleep 1000", "read go; exit 5"});
  ASSERT_EQ(group.start(loop, command, commands, SpawnDefaults::of_this_process()), std::nullopt);
  EXPECT_EQ(spawner.begins, 1);
  std::vector<int> codes;
  group.on_ended([&](const Worker&, const ExitStatus& status) {
    codes.push_back(status.value);
    group.signal_leaders(SIGKILL);
  });
  loop.run();
  EXPECT_EQ(codes, (std::vector{5, SIGKILL}));

  spawner.is_good = false;
  ASSERT_EQ(group.start(loop, command, shell_workers({"exit 6"}), SpawnDefaults::of_this_process()), std::nullopt);
  loop.run();
  EXPECT_EQ(codes, (std::vector{5, SIGKILL, 6})) << "started by core::spawn() then";
  EXPECT_EQ(spawner.begins, 1);
}

TEST(WorkerGroup, KillsItsWorkersWhenItGoes) {
  pid_t pid = 0;
  {
    EventLoop loop;
    WorkerGroup group;
    ASSERT_EQ(
        group.start(loop, {.path = "/bin/sh"}, shell_workers({"exec sleep 1000"}), SpawnDefaults::of_this_process()),
        std::nullopt);
    pid = group.workers().front().process.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1) << "the worker outlived its group";
}

/// Stops a child and waits until it has.
void stop(pid_t pid) {
  ::kill(pid, SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED), 0);
}

TEST(WorkerGroup, ContinuesStoppedWorkersThatAreToEnd) {
  for (const auto tell : {&WorkerGroup::stop_leaders, &WorkerGroup::stop_groups}) {
    EventLoop loop;
    WorkerGroup group;
    ASSERT_EQ(
        group.start(loop, {.path = "/bin/sh"}, shell_workers({"exec sleep 1000"}), SpawnDefaults::of_this_process()),
        std::nullopt);
    std::vector<ExitStatus> ends;
    group.on_ended([&](Worker&, const ExitStatus& status) {
      ends.push_back(status);
      loop.stop();
    });
    stop(group.workers().front().process.pid());
    (group.*tell)(SIGTERM);
    const EventLoop::Timer limit = loop.after(Duration(30'000), [&] { loop.stop(); });
    loop.run();
    EXPECT_EQ(ends, (std::vector<ExitStatus>{{ExitStatus::Kind::kSignaled, SIGTERM}}));
  }
}

TEST(WorkerGroup, CollectsDeathsThatHappenedBeforeASignalIsSent) {
  EventLoop loop;
  WorkerGroup group;
  ASSERT_EQ(group.start(loop, {.path = "/bin/sh"}, shell_workers({"exit 7"}), SpawnDefaults::of_this_process()),
            std::nullopt);
  std::vector<ExitStatus> ends;
  group.on_ended([&](Worker&, const ExitStatus& status) { ends.push_back(status); });
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(group.workers().front().process.pid()), &info, WEXITED | WNOWAIT), 0);
  group.collect_ended();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends.front(), (ExitStatus{ExitStatus::Kind::kExited, 7}));
}

}  // namespace
}  // namespace lrun
