#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "process/run_cgroup.h"

namespace lrun::inline core {

/// Makes every orphan below this process ours (PR_SET_CHILD_SUBREAPER), also those with sessions of their own.
void become_subreaper();

/// The direct children of this process, zombies included, each verified to be one. Empty also when /proc is missing or
/// shows another pid namespace. One thread.
std::vector<pid_t> direct_children();

/// All processes below this one, at any depth, as /proc shows them at some moment. Empty where there is no /proc.
std::vector<pid_t> all_descendants();

/// The parent of any process, from /proc; 0 when that is unknown.
pid_t parent_of(pid_t pid);

/// Reaps ended orphans that this subreaper adopted. Stops at an ended child for which `is_worker` holds: that one is
/// reaped by its owner, who then calls again.
void reap_adopted(const std::function<bool(pid_t)>& is_worker);

/// Kills everything below the children of this process, but not the children themselves.
/// \return false without pidfds, or where /proc does not show this process.
bool kill_below_children();

/// Ends everything below this process, which must be a subreaper, and reaps it.
///
/// All processes in `cgroup` are ended at once. Direct children are signalled: their pids cannot be reused while we
/// have not reaped them, and their own children become direct children in turn. Below a child that has not ended after
/// a second, all processes that /proc shows are signalled, too, through pidfds. SIGCHLD is blocked. \return pids of the
/// direct children that did not end within `limit` (held by the kernel or a tracer), or, earlier,
///         of dead children that cannot be reaped, because tracers that are not below us hold all that are left;
///         {kUnlisted} when some are left that cannot be listed.
///
/// \param spared  direct children without children and outside `cgroup`, which live on; they end, too, where /proc does
///                not show the others
std::vector<pid_t> end_all_descendants(Duration limit, const RunCgroup& cgroup = {},
                                       const std::vector<pid_t>& spared = {});

/// In place of a pid.
inline constexpr pid_t kUnlisted = 0;

/// Whether /proc shows a living process in a process group.
bool lives_in_group(pid_t group);

/// Whether all survivors of end_all_descendants() are dead and only wait to be reaped.
bool are_dead(const std::vector<pid_t>& survivors);

/// '2 processes cannot be ended (uninterruptible in the kernel), first pid 7': the survivors of end_all_descendants(),
/// at least one, with the reason of the first.
std::string survivors_text(const std::vector<pid_t>& survivors);

}  // namespace lrun::inline core
