// In: a function and options of the program. Out: its result from rank 0, after all ranks of this node have ended, or
// WorkersFailed. Implements <lrun/launch.h>; supervised_launch runs the ranks.
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <lrun/error.h>
#include <lrun/launch.h>
#include <lrun/world.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/environment.h"
#include "process/fork_child.h"
#include "runtime/launch/board.h"
#include "runtime/launch/fork_safety.h"
#include "runtime/launch/interpreter.h"
#include "runtime/launch/launch_end.h"
#include "runtime/launch/launch_history.h"
#include "runtime/launch/placement.h"
#include "runtime/launch/port_reservation.h"
#include "runtime/launch/process_start.h"
#include "runtime/launch/rank_main.h"
#include "runtime/launch/returned_state.h"
#include "runtime/launch/supervised_launch.h"

namespace lrun::detail {
namespace {

using RankFunction = std::function<c10::IValue()>;

/// Longer limits are as good as none, and would overflow a clock.
Duration clamped(std::chrono::milliseconds time, const char* what) {
  if (time.count() < 0) throw std::invalid_argument(std::string("the ") + what + " of a launch is negative");
  return std::min<Duration>(time, std::chrono::hours(24 * 3650));
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

int usable_cpus() {
  cpu_set_t cpus;
  return ::sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

/// The program under its own name, so that `ps` shows it. If the file was replaced: the program that still runs.
std::string program_path() {
  constexpr const char* kSelf = "/proc/self/exe";
  char path[4096] = {};
  struct stat named {};
  struct stat self {};
  const bool known = ::readlink(kSelf, path, sizeof path - 1) > 0 && ::stat(path, &named) == 0 &&
                     ::stat(kSelf, &self) == 0 && named.st_dev == self.st_dev && named.st_ino == self.st_ino;
  return known ? path : kSelf;
}

/// One launch from this process, with everything that its ranks need while they run.
class Launch {
 public:
  Launch(const RankFunction& function, const LaunchOptions& options, Placement placement, int call, int history)
      : function_(function),
        options_(options),
        placement_(std::move(placement)),
        call_(call),
        timeout_(clamped(options.timeout, "timeout")),
        grace_(clamped(options.grace, "grace")),
        descriptors_(open_descriptors()),
        board_(LaunchBoard::create(placement_.local_world_size(), history)) {
    if (placement_.master_port == 0) port_.emplace();
  }

  /// \return what the first rank returned.
  std::string run() {
    // Flushes buffers: otherwise the forks would write this process's pending output, too.
    std::cout.flush();
    std::clog.flush();
    std::fflush(nullptr);
    const SupervisedEnd ended = run_supervised(board_, [this](pid_t supervisor) { return order(supervisor); });
    act_on_signal(ended.signal_number);
    if (!ended.end.success()) throw failure_of(ended.end);
    return board_.result();
  }

 private:
  /// In the supervisor.
  RankOrder order(pid_t supervisor) {
    null_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null_) throw std::system_error(errno, std::generic_category(), "/dev/null");
    RankOrder order;
    order.host = host_name();
    order.node_rank = placement_.node_rank;
    order.timeout = timeout_;
    order.grace = grace_;
    order.group.standard_input = null_.get();
    order.group.capture_output = false;
    order.group.shared_memory = board_.fd();
    if (placement_.method == LaunchMethod::kSpawn) order.group.path = program_path();
    for (int local_rank = 0; local_rank < placement_.local_world_size(); ++local_rank) {
      order.ranks.push_back(placement_.method == LaunchMethod::kSpawn ? spawned(local_rank, supervisor)
                                                                      : forked(local_rank));
    }
    return order;
  }

  WorkerCommand rank_command(int local_rank) const {
    WorkerCommand command;
    command.rank = placement_.rank(local_rank);
    command.local_rank = local_rank;
    return command;
  }

  WorkerCommand spawned(int local_rank, pid_t supervisor) const {
    WorkerCommand command = rank_command(local_rank);
    command.argv = command_line();
    Environment environment = Environment::of_this_process();
    for (const std::string_view name : kOfParentOnly) environment.unset(std::string(name));
    for (const auto& [name, value] : variables_of(local_rank)) environment.set(name, value);
    environment.set(kLaunchCallVariable, LaunchCall{call_, local_rank, supervisor}.text());
    for (const auto& [name, value] : environment.variables()) command.own_environment.push_back(name + "=" + value);
    return command;
  }

  WorkerCommand forked(int local_rank) {
    WorkerCommand command = rank_command(local_rank);
    command.descriptors = descriptors_;
    command.descriptors.push_back(board_.fd());
    std::sort(command.descriptors.begin(), command.descriptors.end());
    command.function = [this, local_rank] { return run_forked(local_rank); };
    return command;
  }

  int run_forked(int local_rank) {
    for (const std::string_view name : kOfParentOnly) ::unsetenv(std::string(name).c_str());
    for (const auto& [name, value] : variables_of(local_rank)) ::setenv(name.c_str(), value.c_str(), 1);
    if (placement_.threads > 0) at::set_num_threads(placement_.threads);  // the variable was read long ago
    return run_rank(board_, local_rank, function_, options_.module.get());
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> variables_of(int local_rank) const {
    return rank_variables(placement_, local_rank, port_ ? port_->port() : placement_.master_port);
  }

  const RankFunction& function_;
  const LaunchOptions& options_;
  const Placement placement_;
  const int call_;
  const Duration timeout_;
  const Duration grace_;
  const std::vector<int> descriptors_;  // of the program: forked ranks have no others of this launch but the board
  LaunchBoard board_;
  std::optional<PortReservation> port_;
  Fd null_;
};

/// The history of the program that launched this rank: its supervisor inherited the descriptor.
LaunchHistory open_history(const LaunchBoard& board, pid_t supervisor) {
  if (board.history() < 0) return {};
  const std::string path = "/proc/" + std::to_string(supervisor) + "/fd/" + std::to_string(board.history());
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw std::system_error(errno, std::generic_category(), "what earlier launches returned: " + path);
  return LaunchHistory(std::move(file));
}

/// In a rank that executes the program again: this call of launch() is the one that started it, or one before.
c10::IValue go_on_to_own_call(PastLaunches& past, const RankFunction& function, const LaunchOptions& options) {
  const LaunchCall& own = *process_start().call;
  static LaunchBoard board = LaunchBoard::open(std::move(process_start().board));
  static LaunchHistory history = open_history(board, own.parent);
  if (past.next() == own.call) end_rank(run_rank(board, own.local_rank, function, options.module.get()));
  return unpack(past.replay(history), options.module.get());
}

std::string start_ranks(const RankFunction& function, const LaunchOptions& options, Placement placement,
                        const PastLaunches& past) {
  if (placement.method == LaunchMethod::kSpawn) {
    return Launch(function, options, std::move(placement), past.next(), past.history()).run();
  }
  const std::string reason = why_not_fork(fork_facts());
  if (!reason.empty()) throw Unsupported("ranks cannot be forked from this process: " + reason);
  return Launch(function, options, std::move(placement), past.next(), -1).run();
}

/// One launch at a time; none in a rank.
class OneAtATime {
 public:
  OneAtATime() {
    if (is_in_rank()) throw std::logic_error("launch() was called by a function that launch() runs");
    if (busy_.exchange(true)) throw std::logic_error("launch() was called while another thread's launch runs");
  }
  ~OneAtATime() { busy_ = false; }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  static inline std::atomic<bool> busy_ = false;
};

}  // namespace

c10::IValue launch(const RankFunction& function, const LaunchOptions& options) {
  static PastLaunches& past = *new PastLaunches;  // never destroyed: exit handlers may launch, too
  end_where_exiting();
  const OneAtATime one;
  if (process_start().call) return go_on_to_own_call(past, function, options);
  const bool interactive = is_interactive(interpreter_facts());
  std::optional<c10::IValue> in_place;
  const std::string returned = past.record(!interactive, [&] {
    Placement placement = place_ranks(options, Environment::of_this_process().variables(), interactive, usable_cpus());
    if (placement.method != LaunchMethod::kInPlace) {
      return start_ranks(function, options, std::move(placement), past);
    }
    in_place = function();
    return std::string();
  });
  return in_place ? *std::move(in_place) : unpack(returned, options.module.get());
}

}  // namespace lrun::detail
