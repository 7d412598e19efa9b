#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::inline core {

/// The reason why a run ended.
struct RunEnd {
  enum class Kind {
    kSucceeded,       ///< every worker ended with code 0
    kWorkerFailed,    ///< a worker failed by itself; the others were stopped
    kStartFailed,     ///< a worker could not be started; nothing runs
    kInterrupted,     ///< lrun received `signal_number`
    kNotice,          ///< the machine of this node is about to go; `who` has the notice
    kConsoleClosed,   ///< lrun's stdout or stderr was closed
    kRequested,       ///< stopped through the control socket
    kGuardDied,       ///< lrun's own guard was killed
    kHeadLost,        ///< the connection to the lrun that started this one has ended
    kLauncherFailed,  ///< lrun itself could not go on
    kTimedOut,        ///< the run took longer than `limit`
    kHang,            ///< no worker made progress for `limit`
    kStartTimedOut,   ///< not all workers were connected to the store after `limit`
    kWatched,         ///< a worker printed what --watch stops at, or nothing for `limit`; `who` tells it
    kNodeLost,        ///< a node of the job is gone; `who` says which, and how that is known
    kNodeJoined,      ///< a node has joined the job, and all start again with it; `who` says which
  };

  Kind kind = Kind::kSucceeded;
  int signal_number = 0;
  std::int64_t limit_ms = 0;   ///< the time that was allowed, for the reasons that are limits
  std::string who = {};        ///< the ranks or the node concerned: 'rank 3 is in read()'; empty: not known
  bool grace_expired = false;  ///< workers were killed because they did not end in time
  std::string node = {};       ///< in a job of several nodes, where this was decided; empty: here
  int node_rank = -1;          ///< of `node`; -1: here
  bool by_head = false;        ///< the lrun that the user typed got the signal and passed it on to all nodes
  int rank = -1;               ///< of kWatched: the one that printed it; else -1

  /// True when the launcher of this node decided it.
  [[nodiscard]] bool is_ours() const { return node.empty(); }
  /// True when the set of nodes has changed: the job may go on with the new one.
  [[nodiscard]] bool changes_nodes() const { return kind == Kind::kNodeLost || kind == Kind::kNodeJoined; }
  /// True when another attempt may follow this reason.
  [[nodiscard]] bool may_go_on() const { return may_be_repeated() || changes_nodes(); }
  /// True when the attempt itself went wrong, so that --max-restarts counts.
  [[nodiscard]] bool may_be_repeated() const {
    return kind == Kind::kWorkerFailed || kind == Kind::kHang || kind == Kind::kWatched;
  }
  bool operator==(const RunEnd&) const = default;
};

/// 'succeeded', 'worker_failed', 'interrupted', ...: the name of the reason in JSON.
std::string_view name_of(RunEnd::Kind kind);
std::optional<RunEnd::Kind> run_end_named(std::string_view name);

}  // namespace lrun::inline core
