#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "report/message_sink.h"
#include "run/fork_server.h"
#include "run/prepared_start.h"

namespace lrun::launcher {

/// The outcome of preload(): at most one of the two.
struct Preloaded {
  std::unique_ptr<ForkServer> server;  ///< empty: the workers start without one
  std::optional<int> signal_number;    ///< lrun is to end; 0: its guard was killed
};

/// Makes the fork server of --preload and waits until it has imported the modules. Where no rank can be forked one
/// warning says why. Runs `loop`, which must outlive the server. To be called while nothing runs.
Preloaded preload(EventLoop& loop, const LaunchPlan& plan, const PreparedStart& start, const Guard& guard,
                  MessageSink& sink);

/// Ends lrun after such a signal. \return the exit code
int end_while_preloading(int signal_number, const LaunchPlan& plan, Guard& guard, MessageSink& sink);

/// 'every worker imports by itself', with the reason.
std::string preload_lost(const LaunchPlan& plan, const std::string& why);

}  // namespace lrun::launcher
