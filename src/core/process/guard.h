#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "base/duration.h"
#include "process/descriptor_channel.h"
#include "process/run_cgroup.h"

namespace lrun::inline core {

/// Signals that the guard forwards and the launcher reads: those that end a run, and USR1, USR2, TSTP, CONT
/// and WINCH. One that was ignored when lrun was started (nohup, a shell's background job) is left out.
std::vector<int> handled_signals(const std::vector<int>& stop_signals);

/// What the launcher is called. Not 'lrun': who kills that name without mercy (`pkill -9 lrun`, also with -f) hits the
/// guard alone, and the launcher can still clean up.
inline constexpr const char* kLauncherName = "rank-supervisor";

struct RunGuardOptions {
  RunCgroup cgroup = {};  ///< of the workers; ended with them, and removed
  /// A worker reads lrun's standard input: where that is a terminal, a run that is continued in the background stops
  /// again, as the kernel stops a shell's jobs that read.
  bool reads_terminal = false;
  /// Of a job of several nodes, in which Guard::hold() and Guard::beat() are called; 0: this node is alone.
  Duration heartbeat{0};
};

/// The guard, as the launcher knows it; what it is told goes through shared memory.
class Guard {
 public:
  /// Also after its death.
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool has_died() const;

  /// That the workers are to be started in; may be none. The launcher removes it when the guard has died.
  [[nodiscard]] const RunCgroup& cgroup() const { return cgroup_; }

  /// To be called for each forwarded_signal() that was read. The guard ends a launcher that does not read.
  void note_heard() const;

  /// A connection whose end tells others that nothing runs here any more: the guard has it open, too, and ends the
  /// workers of a launcher that was killed before it closes it. In the place of the one before; -1: there is none. Who
  /// closes it while the guard lives has to shut it down first.
  void hold(int connection) const;

  /// The launcher runs (LauncherBeat). From the first call on a launcher that is silent for too long loses its workers.
  void beat() const;
  /// Whether it has lost them since begin_workers(): the guard killed them, so they are not to be blamed.
  [[nodiscard]] bool has_ended_workers() const;
  /// New workers are about to be started.
  void begin_workers() const;

  /// The run is over. `clean`: nothing is left below the launcher, and the guard need not look. With a signal, lrun is
  /// to die of it (it was interrupted, and whoever waits for it should see that).
  void mark_end(int signal_number, bool clean);

 private:
  friend int run_guarded(const std::vector<int>&, const std::function<int(Guard&)>&, RunGuardOptions);
  explicit Guard(RunGuardOptions options);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  struct Page;
  Page* page_;
  pid_t pid_;
  RunCgroup cgroup_;
  std::optional<DescriptorChannel> held_;
};

/// Runs `launcher` in a child process and watches over it, so that nothing survives a run however lrun ends.
///
/// lrun is two processes. The outer one, the guard, is what the user started: it forwards signals, stop and continue to
/// the inner one, the launcher, and passes its ending on. Both are subreapers. When the launcher dies, the guard adopts
/// and ends everything below it; when the guard dies, the launcher is told by a parent-death signal and does the same.
/// A launcher that leaves a second INT, TERM or QUIT unread is ended by the guard. Either one alone cleans up,
/// grandchildren with sessions of their own included. (A guard that were a child of the launcher would adopt nothing:
/// orphans go to the nearest ancestor.)
///
/// A stopped process (SIGSTOP) cannot clean up. When the other one ends, the kernel continues it once
/// (continue_signal.h), and a third process, the Waker, until it has ended, too. In whatever order they come:
///
///     stopped         killed     what ends the workers and all below them                                     within
///     guard           launcher   the kernel the workers (death signal), the guard the rest, when continued    0.1 s
///     launcher        guard      the launcher, when continued                                                 0.1 s
///     both            one        as above                                                                     0.1 s
///     one, or both    none       one node: nothing, the run goes on (SIGCONT makes it whole)
///     launcher        none       several nodes: the guard (BeatWatch)                             0.7 heartbeats
///     both            none       several nodes: the guard, when continued                         0.7 heartbeats
///     -               both       the kernel the workers; what is in a cgroup a later run
///     (RunCgroup::remove_abandoned())
///
/// Ctrl-Z (SIGTSTP) is no such stop: the launcher stops the workers and goes on.
///
/// The launcher leads a session of its own, so a signal to the terminal's foreground group reaches it once, through the
/// guard. Its signals are blocked when `launcher` is called, to be read from a signalfd. What the guard forwards comes
/// as forwarded_signal() with the number as its value; only TSTP, CONT and WINCH, which replace what they find pending,
/// come as themselves.
///
/// \param stop_signals  signals that end the run; any other keeps its default action, which ends lrun at once.
/// \return what `launcher` returned, or 125 after one line when it was killed by somebody. Does not return, but dies of
///         the signal, after Guard::mark_end(signal, …).
/// \throws std::system_error  no memory, no process, no descriptors.
int run_guarded(const std::vector<int>& stop_signals, const std::function<int(Guard&)>& launcher,
                RunGuardOptions options = {});

}  // namespace lrun::inline core
