#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "runtime/launch/board.h"
#include "runtime/launch/launch_end.h"
#include "runtime/launch/rank_supervisor.h"

namespace lrun::detail {

/// How a launch ended, and which signal came meanwhile.
struct SupervisedEnd {
  LaunchEnd end;
  int signal_number = 0;  ///< that this process got, and is still to act on; 0: none
};

/// Runs ranks below a supervisor process that is forked for them, and waits for its end. While it waits, this thread's
/// INT, TERM, HUP and QUIT (those that are not ignored) are passed on to the ranks, and a TSTP of this process that has
/// its default action stops them, too, until this process goes on. When this process is killed, the
/// supervisor and all below it end, too.
/// \param order_for  called in the supervisor, whose pid it is given. Ranks that are forked go on from there.
/// \throws std::system_error  no process, no descriptor.
SupervisedEnd run_supervised(const LaunchBoard& board, const std::function<RankOrder(pid_t supervisor)>& order_for);

/// Acts as if the signal came now.
void act_on_signal(int signal_number);

}  // namespace lrun::detail
