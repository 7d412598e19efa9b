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

/// The environment as exec wants it: the shared part once, one slot behind it for each variable of the worker.
class EnvironmentBlock {
 public:
  explicit EnvironmentBlock(const std::vector<std::string>& shared) {
    for (const std::string& entry : shared) pointers_.push_back(const_cast<char*>(entry.c_str()));
    shared_count_ = pointers_.size();
  }

  char* const* with(const std::vector<std::string>& own) {
    pointers_.resize(shared_count_);
    for (const std::string& entry : own) pointers_.push_back(const_cast<char*>(entry.c_str()));
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  std::vector<char*> pointers_;
  std::size_t shared_count_ = 0;
};

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

struct Streams {
  int in = 0;
  int out = 1;
  int err = 2;
};

/// \throws std::system_error  no pipe.
Streams streams_of(const WorkerCommand& command, const GroupCommand& group, Pipe& out, Pipe& err) {
  return {command.standard_input >= 0 ? command.standard_input : group.standard_input,
          output_of(command.standard_output, group, out, 1), output_of(command.standard_error, group, err, 2)};
}

SpawnResult fork_worker(const WorkerCommand& command, const Streams& streams) {
  return fork_child({command.function, streams.in, streams.out, streams.err, command.descriptors});
}

SpawnResult spawn_worker(const WorkerCommand& command, const GroupCommand& group, const Streams& streams,
                         EnvironmentBlock& environment, const SpawnDefaults& defaults) {
  SpawnRequest request{.path = group.path.c_str(),
                       .standard_input = streams.in,
                       .standard_output = streams.out,
                       .standard_error = streams.err,
                       .limits = group.limits};
  if (!command.path.empty()) request.path = command.path.c_str();
  if (!group.folder.empty()) request.folder = group.folder.c_str();
  if (group.shared_memory >= 0) request.extras = {&group.shared_memory, 1};
  request.cgroup = group.cgroup;
  request.own_terminal = command.own_terminal;
  const std::vector<char*> argv = argument_pointers(command.argv);
  request.argv = argv.data();
  request.envp = environment.with(command.own_environment);
  const std::vector<cpu_set_t> cpus = cpu_mask(command.cpus);
  if (!cpus.empty()) request.cpus = cpus.data();
  request.cpus_bytes = cpus.size() * sizeof(cpu_set_t);
  return group.spawn ? group.spawn(request, defaults) : spawn(request, defaults);
}

}  // namespace

WorkerGroup::~WorkerGroup() { end(); }

std::optional<StartFailure> WorkerGroup::start(EventLoop& loop, const GroupCommand& group,
                                               std::span<const WorkerCommand> commands, const SpawnDefaults& defaults) {
  EnvironmentBlock environment(group.shared_environment);
  for (const WorkerCommand& command : commands) {
    Pipe out;
    Pipe err;
    Streams streams;
    try {
      streams = streams_of(command, group, out, err);
    } catch (const std::system_error& error) {
      end();
      return StartFailure{command.local_rank, error.code().value(), false};
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    SpawnResult result =
        command.function ? fork_worker(command, streams) : spawn_worker(command, group, streams, environment, defaults);
    if (!result.ok()) {
      end();
      return StartFailure{command.local_rank, result.error_number, result.exec_failed};
    }
    workers_.push_back(
        {command.rank, command.local_rank, std::move(*result.child), now, 0, std::move(out.read), std::move(err.read)});
    watch_last(loop);
  }
  return std::nullopt;
}

/// The worker that was just started.
void WorkerGroup::watch_last(EventLoop& loop) {
  note_group(workers_.back().process.pid());
  const std::size_t index = watches_.size();
  const int poll_fd = workers_.back().process.poll_fd();
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
