// In: commands of workers. Out: their processes, their output pipes and their deaths, as events of the loop. Called by
// the attempts of a run. spawn() and fork_child() do the starting.
#include "process/worker_group.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "process/cpu_time.h"
#include "process/descendants.h"
#include "process/fork_child.h"
#include "process/guard_death.h"

namespace lrun::inline core {
namespace {

constexpr Duration kKillLimit(5000);

/// As the kernel wants it; empty for no CPU.
std::vector<cpu_set_t> cpu_mask(const std::vector<int>& cpus) {
  std::vector<cpu_set_t> mask;
  for (const int cpu : cpus) {
    const auto number = static_cast<std::size_t>(cpu);
    if (mask.size() <= number / CPU_SETSIZE) mask.resize(number / CPU_SETSIZE + 1);  // new ones are all zero
    CPU_SET_S(number, mask.size() * sizeof(cpu_set_t), mask.data());
  }
  return mask;
}

/// The descriptor of one output stream; `pipe` is made where one is needed.
int output_of(int asked, const GroupCommand& group, Pipe& pipe, int inherited) {
  if (asked >= 0) return asked;
  if (!group.capture_output) return inherited;
  pipe = make_pipe();
  return pipe.write.get();
}

SpawnResult start_one(const WorkerCommand& command, const SpawnRequest& request, const SpawnDefaults& defaults) {
  if (!command.function) return spawn(request, defaults);
  return fork_child(
      {command.function, request.standard_input, request.standard_output, request.standard_error, command.descriptors});
}

}  // namespace

WorkerGroup::~WorkerGroup() { end(); }

/// A worker that is about to be started: its request with what that points to.
struct WorkerGroup::Start {
  Pipe out{};
  Pipe err{};
  std::vector<char*> argv{};
  std::vector<char*> environment{};
  std::vector<cpu_set_t> cpus{};
  SpawnRequest request{};

  /// \throws std::system_error  no pipe.
  static Start of(const WorkerCommand& command, const GroupCommand& group);
};

WorkerGroup::Start WorkerGroup::Start::of(const WorkerCommand& command, const GroupCommand& group) {
  Start start;
  SpawnRequest& request = start.request;
  request.standard_input = command.standard_input >= 0 ? command.standard_input : group.standard_input;
  request.standard_output = output_of(command.standard_output, group, start.out, 1);
  request.standard_error = output_of(command.standard_error, group, start.err, 2);
  if (command.function) return start;
  request.path = command.path.empty() ? group.path.c_str() : command.path.c_str();
  if (!group.folder.empty()) request.folder = group.folder.c_str();
  request.limits = group.limits;
  if (group.shared_memory >= 0) request.extras = {&group.shared_memory, 1};
  request.cgroup = group.cgroup;
  request.own_terminal = command.own_terminal;
  start.argv = argument_pointers(command.argv);
  request.argv = start.argv.data();
  start.environment = argument_pointers(group.shared_environment);
  start.environment.pop_back();
  for (char* const entry : argument_pointers(command.own_environment)) start.environment.push_back(entry);
  request.envp = start.environment.data();
  start.cpus = cpu_mask(command.cpus);
  if (!start.cpus.empty()) request.cpus = start.cpus.data();
  request.cpus_bytes = start.cpus.size() * sizeof(cpu_set_t);
  return start;
}

std::optional<StartFailure> WorkerGroup::start(EventLoop& loop, const GroupCommand& group,
                                               std::span<const WorkerCommand> commands, const SpawnDefaults& defaults) {
  std::vector<Start> starts;
  try {
    for (const WorkerCommand& command : commands) starts.push_back(Start::of(command, group));
  } catch (const std::system_error& error) {
    end();
    return StartFailure{commands[starts.size()].local_rank, error.code().value(), false};
  }
  if (start_together(loop, group, commands, starts)) return std::nullopt;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const SteadyTime now = std::chrono::steady_clock::now();
    SpawnResult result = start_one(commands[i], starts[i].request, defaults);
    if (!result.ok()) {
      end();
      return StartFailure{commands[i].local_rank, result.error_number, result.exec_failed};
    }
    add(commands[i], starts[i], std::move(*result.child), now);
    watch_next(loop);
  }
  return std::nullopt;
}

/// \return false: they are to be started one by one.
bool WorkerGroup::start_together(EventLoop& loop, const GroupCommand& group, std::span<const WorkerCommand> commands,
                                 std::span<Start> starts) {
  if (group.spawner == nullptr) return false;
  std::vector<SpawnRequest> requests;
  for (const Start& start : starts) requests.push_back(start.request);
  const SteadyTime now = std::chrono::steady_clock::now();
  std::vector<PidFd> processes = group.spawner->start(requests);
  if (processes.empty()) return false;
  for (std::size_t i = 0; i < commands.size(); ++i) add(commands[i], starts[i], std::move(processes[i]), now);
  while (watches_.size() < workers_.size()) watch_next(loop);
  group.spawner->begin();
  return true;
}

void WorkerGroup::add(const WorkerCommand& command, Start& start, PidFd process, SteadyTime now) {
  workers_.push_back({command.rank, command.local_rank, std::move(process), now, 0, std::move(start.out.read),
                      std::move(start.err.read)});
}

/// The first worker that is not watched yet.
void WorkerGroup::watch_next(EventLoop& loop) {
  const std::size_t index = watches_.size();
  const PidFd& process = workers_[index].process;
  note_group(process.pid());
  const int poll_fd = process.poll_fd();
  watches_.push_back(poll_fd >= 0 ? loop.on_readable(poll_fd, [this, index] { collect(index); }) : EventLoop::Watch());
}

void WorkerGroup::collect(std::size_t index) {
  Worker& worker = workers_[index];
  if (given_up_ || worker.process.status() || !worker.process.has_ended()) return;
  // While the leader is unreaped the group's number is ours: the rest of the group gets its signal now or never.
  if (stop_signal_ != 0 && worker.process.signal_group(stop_signal_)) worker.left_signal = stop_signal_;
  if (worker.left_signal != 0) worker.process.signal_group(SIGCONT);
  forget_group(worker.process.pid());
  worker.cpu_limit_seconds = cpu_limit_used_up(worker.process.pid(), worker.process.ending().value_or(ExitStatus{}));
  const std::optional<ExitStatus> status = worker.process.try_wait();
  watches_[index].cancel();
  if (status && ended_) ended_(worker, *status);
}

void WorkerGroup::give_up() {
  given_up_ = true;
  for (EventLoop::Watch& watch : watches_) watch.cancel();
  for (const Worker& worker : workers_) forget_group(worker.process.pid());
}

void WorkerGroup::collect_ended() {
  for (std::size_t i = 0; i < workers_.size(); ++i) collect(i);
}

void WorkerGroup::child_signalled() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].process.poll_fd() < 0) collect(i);
  }
}

void WorkerGroup::stop_leaders(int signal_number) {
  stop_signal_ = signal_number;
  signal_leaders(signal_number);
  signal_groups(SIGCONT);
}

void WorkerGroup::stop_groups(int signal_number) {
  stop_signal_ = signal_number;
  signal_groups(signal_number);
  signal_groups(SIGCONT);
}

void WorkerGroup::signal_leaders(int signal_number) {
  for (const Worker& worker : workers_) worker.process.signal(signal_number);
}

void WorkerGroup::signal_groups(int signal_number) {
  for (const Worker& worker : workers_) worker.process.signal_group(signal_number);
}

bool WorkerGroup::remains_linger(const Worker& worker) {
  const pid_t group = worker.process.pid();
  if (worker.left_signal == 0 || ::kill(-group, 0) != 0) return false;
  return !worker.process.was_held() || lives_in_group(group);  // while held, the dead worker itself is still a member
}

bool WorkerGroup::remains_linger() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return remains_linger(worker); });
}

int WorkerGroup::running() const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) { return !worker.process.status(); }));
}

void WorkerGroup::end() {
  watches_.clear();
  for (const Worker& worker : workers_) worker.process.signal_group(SIGKILL);
  if (given_up_) return workers_.clear();
  // Only an uninterruptible sleep takes longer: that is left to the guard.
  const auto deadline = std::chrono::steady_clock::now() + kKillLimit;
  for (Worker& worker : workers_) {
    if (worker.process.status()) continue;
    const auto left = std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now());
    const bool ended = worker.process.wait_until_ended(std::max(left, Duration::zero()));
    forget_group(worker.process.pid());
    if (ended) (void)worker.process.try_wait();
  }
  workers_.clear();
}

}  // namespace lrun::inline core
