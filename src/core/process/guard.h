#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/duration.h"
#include "process/descriptor_channel.h"
#include "process/memory_folder.h"
#include "process/run_cgroup.h"

namespace lrun::inline core {

/// Signals that the guard forwards and the launcher reads: those that end a run, and USR1, USR2, TSTP, CONT
/// and WINCH. One that was ignored when lrun was started (nohup, a shell's background job) is left out.
std::vector<int> handled_signals(const std::vector<int>& stop_signals);

/// The name of the launcher's process. Not 'lrun': then `pkill -9 lrun`, also with -f, hits the guard alone, and the
/// launcher can still clean up.
inline constexpr const char* kLauncherName = "rank-supervisor";

struct RunGuardOptions {
  RunCgroup cgroup = {};     ///< of the workers; ended with them, and removed
  MemoryFolder memory = {};  ///< of the workers; removed when they have ended
  /// A worker reads lrun's standard input: where that is a terminal, a run that is continued in the background stops
  /// again, as the kernel stops a shell's jobs that read.
  bool reads_terminal = false;
  /// Of a job of several nodes, in which Guard::hold() and Guard::note_heartbeat() are called; 0: there is one node.
  Duration heartbeat{0};
};

/// The guard, as the launcher knows it. The launcher notifies it through shared memory.
class Guard {
 public:
  /// \param pid  the guard's process; run_guarded() passes its own, before it forks the launcher
  /// \throws std::system_error  there is no memory.
  explicit Guard(RunGuardOptions options, pid_t pid);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard();

  /// Also after its death.
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool has_died() const;

  /// The cgroup for the workers; may be empty. The launcher removes it when the guard has died.
  [[nodiscard]] const RunCgroup& cgroup() const { return cgroup_; }
  /// The same of the workers' folder in memory.
  [[nodiscard]] const MemoryFolder& memory() const { return memory_; }

  /// To be called for each forwarded_signal() that was read. The guard ends a launcher that leaves them unread.
  void note_heard() const;

  /// Gives the guard a copy of a connection, in the place of the one before; -1: none. The end of that connection tells
  /// the other nodes that nothing runs here any more: the guard closes it only after it has ended the workers of a
  /// launcher that was killed. To end the connection while the guard lives, shut it down before closing it.
  void hold(int connection) const;

  /// The launcher is alive (LauncherHeartbeat). From the first call on, the guard kills the workers of a launcher that
  /// is silent for too long.
  void note_heartbeat() const;
  /// Whether the guard has killed them since begin_workers(): then their end is not their fault.
  [[nodiscard]] bool has_ended_workers() const;
  /// New workers are about to be started. Waits while the guard kills those of before, for a second at most.
  void begin_workers() const;

  /// The run is over. `clean`: nothing is left below the launcher, and the guard need not look. With a signal, lrun
  /// dies of it: its parent sees that it was interrupted.
  void mark_end(int signal_number, bool clean);

 private:
  friend int run_guarded(const std::vector<int>&, const std::function<int(Guard&)>&, RunGuardOptions);
  struct Page;
  Page* page_;
  pid_t pid_;
  RunCgroup cgroup_;
  MemoryFolder memory_;
  std::optional<DescriptorChannel> held_;
};

/// Runs `launcher` in a child process and watches over it, so that nothing survives a run however lrun ends.
///
/// lrun is two processes. The outer one, the guard, is what the user started: it forwards signals, stop and continue to
/// the inner one, the launcher, and passes its ending on. Both are subreapers. When the launcher dies, the guard adopts
/// and ends everything below it; when the guard dies, the launcher gets a parent-death signal and does the same.
/// A launcher that leaves a second INT, TERM or QUIT unread is ended by the guard. Either one alone cleans up,
/// grandchildren with sessions of their own included. (A guard below the launcher would adopt nothing: orphans go to
/// the nearest ancestor.)
///
/// A stopped process (SIGSTOP) cannot clean up. When the other one ends, the kernel continues it once
/// (continue_signal.h), and a third process, the Waker, until it has ended, too. In whatever order they come:
///
///     stopped         killed     what ends the workers and all below them                                     within
///     guard           launcher   the kernel the workers (death signal), the guard the rest, when continued    0.1 s
///     launcher        guard      the launcher, when continued                                                 0.1 s
///     both            one        as above                                                                     0.1 s
///     one, or both    none       one node: nothing, the run goes on (SIGCONT makes it whole)
///     launcher        none       several nodes: the guard (HeartbeatWatch)                             0.7 heartbeats
///     both            none       several nodes: the guard, when continued                         0.7 heartbeats
///     -               both       the kernel the workers, the waker what is in a cgroup or in the
///                                folder in memory. If the waker was killed, too: a later run
///                                (RunCgroup and MemoryFolder::remove_abandoned())
///
/// Ctrl-Z (SIGTSTP) is no such stop: the launcher stops the workers and goes on.
///
/// The launcher leads a session of its own, so a signal to the terminal's foreground group reaches it once, through the
/// guard. Its signals are blocked when `launcher` is called, to be read from a signalfd. A forwarded signal comes as
/// forwarded_signal() with the number as its value; only TSTP, CONT and WINCH, which replace pending ones, come as
/// themselves.
///
/// \param stop_signals  signals that end the run; any other keeps its default action, which ends lrun at once.
/// \return the result of `launcher`, or 125 after one line when it was killed. After Guard::mark_end(signal, …) it does
///         not return, but dies of the signal.
/// \throws std::system_error  no memory, no process, no descriptors.
int run_guarded(const std::vector<int>& stop_signals, const std::function<int(Guard&)>& launcher,
                RunGuardOptions options = {});

}  // namespace lrun::inline core
