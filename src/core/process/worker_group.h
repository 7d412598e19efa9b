#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "process/spawn.h"

namespace lrun::inline core {

/// The command of one worker. `own_environment` is added to the variables that all workers share; entries are
/// NAME=VALUE.
struct WorkerCommand {
  int rank = 0;
  int local_rank = 0;
  std::vector<std::string> argv;
  std::vector<std::string> own_environment;
  std::vector<int> cpus = {};  ///< that it may run on; empty: all
  std::string path = {};       ///< of the program, already found; empty: the group's
  int standard_input = -1;     ///< descriptor that it gets; -1: the group's
  int standard_output = -1;    ///< descriptor that it gets; -1: as GroupCommand::capture_output says
  int standard_error = -1;
  bool own_terminal = false;  ///< standard_input is a terminal that becomes its controlling one
  /// If set, the worker is a fork of this process that ends with the code of this function (ForkRequest), and the
  /// fields about a program are not used.
  std::function<int()> function = {};
  std::vector<int> descriptors = {};  ///< that such a worker keeps open
};

/// Another way than core::spawn() to start the workers of a group.
class Spawner {
 public:
  Spawner() = default;
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  virtual ~Spawner() = default;
  /// How many it can be asked for together; at least 1.
  [[nodiscard]] virtual std::size_t at_a_time() const = 0;
  /// Makes processes that wait for begin(). \return one for each request, in their order; empty: core::spawn() is to
  /// start them.
  virtual std::vector<PidFd> start(std::span<const SpawnRequest> requests) = 0;
  /// Lets those of the last start() begin. Called when all are watched.
  virtual void begin() = 0;
};

/// The part of the command that all workers of a start have in common.
struct GroupCommand {
  std::string path;                             ///< of the program, already found
  std::vector<std::string> shared_environment;  ///< NAME=VALUE; no name is repeated in own_environment
  int standard_input = 0;                       ///< descriptor that every worker gets as stdin
  std::string folder;                           ///< to start in; empty: lrun's own
  std::vector<ProcessLimit> limits;
  int cgroup = -1;             ///< directory of the cgroup that they are to be in; -1: lrun's own
  int shared_memory = -1;      ///< given to every worker as kExtraDescriptor; -1: none
  bool capture_output = true;  ///< pipes for stdout and stderr; false: the launcher's own are inherited
  Spawner* spawner = nullptr;  ///< in the place of core::spawn()
};

/// One running or ended worker.
struct Worker {
  int rank = 0;
  int local_rank = 0;
  PidFd process;
  SteadyTime started;
  int left_signal = 0;  ///< that its group got because it ended before the rest of it; 0: none
  Fd standard_output;   ///< read end of its pipe; its reader moves it out
  Fd standard_error;
  std::uint64_t cpu_limit_seconds = 0;  ///< cpu_limit_used_up(), once it has ended
};

/// Why a start failed. Nothing is left running then.
struct StartFailure {
  int local_rank = 0;
  int error_number = 0;
  bool exec_failed = false;  ///< the program could not be executed; false: no process or pipe could be made
  std::optional<std::system_error> refusal = {};  ///< the error, where another resource could not be made
};

/// The workers of one node: started all or none unless the start is called off, watched by their pidfds, signalled
/// safely.
///
/// The destructor kills and reaps what still runs: no worker outlives its group. One thread.
class WorkerGroup {
 public:
  using Ended = std::function<void(Worker&, const ExitStatus&)>;

  WorkerGroup() = default;
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;
  ~WorkerGroup();

  /// Adds workers to those that it has; after a failure all are killed and reaped, and it has none. Each is watched
  /// before the next one, or those that are started with it, can end, so that the order of deaths is the kernel's.
  std::optional<StartFailure> start(EventLoop& loop, const GroupCommand& group, std::span<const WorkerCommand> commands,
                                    const SpawnDefaults& defaults);

  /// Called once for each worker, in the order of their deaths. To be set before the loop runs.
  void on_ended(Ended ended) { ended_ = std::move(ended); }

  /// Reports the deaths that have happened so far. To be called before a signal is sent, so that workers that ended by
  /// themselves are not taken for obedient ones: a signal to a dead but unreaped process succeeds.
  void collect_ended();

  /// SIGCHLD came: reports the deaths of workers that have no pidfd.
  void child_signalled();

  /// Signals each running worker itself, not its children, which a worker ends as it sees fit. Its group gets the
  /// signal when the worker has ended and left some of it (a shell that started the real program). Stopped members of
  /// the group are continued: a stopped process cannot obey.
  void stop_leaders(int signal_number);
  /// Signals each running worker itself, without stopping it.
  void signal_leaders(int signal_number);
  /// Signals each running worker's whole process group, as the terminal does with Ctrl-C; the rest of a group is
  /// treated as by stop_leaders().
  void stop_groups(int signal_number);
  /// The same without stopping: the rest of a group gets nothing more.
  void signal_groups(int signal_number);

  /// True while members of an ended worker's process group live that got its signal. May stay true for too long if the
  /// kernel gives the group's number to others meanwhile; they are not signalled.
  [[nodiscard]] bool remains_linger() const;
  /// The same for one worker's group.
  [[nodiscard]] static bool remains_linger(const Worker& worker);

  /// Kills and reaps all; the group is empty afterwards.
  void end();

  /// Stops waiting, also in the destructor: workers that have not ended are left to the guard.
  void give_up();

  [[nodiscard]] std::vector<Worker>& workers() { return workers_; }
  [[nodiscard]] const std::vector<Worker>& workers() const { return workers_; }
  [[nodiscard]] int running() const;

 private:
  struct Start;
  bool start_together(EventLoop& loop, const GroupCommand& group, std::span<const WorkerCommand> commands,
                      std::span<Start> starts);
  void add(const WorkerCommand& command, Start& start, PidFd process, SteadyTime now);
  void watch_next(EventLoop& loop);
  void collect(std::size_t index);

  std::vector<Worker> workers_;
  std::vector<EventLoop::Watch> watches_;
  bool given_up_ = false;
  int stop_signal_ = 0;  ///< that workers were stopped with; 0 while they work
  Ended ended_;
};

}  // namespace lrun::inline core
