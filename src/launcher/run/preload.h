#pragma once

#include <memory>
#include <optional>

#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "process/guard.h"
#include "process/worker_group.h"
#include "report/message_sink.h"
#include "run/fork_server.h"
#include "run/prepared_start.h"

namespace lrun::launcher {

/// The outcome of preload(): at most one of the two.
struct Preloaded {
  std::unique_ptr<ForkServer> server;  ///< empty: the workers start without one
  std::optional<int> exit_code;        ///< of lrun, which was asked to end
};

/// Makes the fork server of --preload and waits until it has imported the modules. Where no rank can be forked one
/// warning says why. `environment`: lrun's own. Runs `loop`, which must outlive the server. To be called while nothing
/// runs.
Preloaded preload(EventLoop& loop, const LaunchPlan& plan, const PreparedStart& start, const Environment& environment,
                  Guard& guard, MessageSink& sink);

/// Starts workers by forks of the server, until that is lost, which one warning tells. Everything must outlive the
/// result.
std::shared_ptr<Spawner> spawner_of(ForkServer& server, const LaunchPlan& plan, MessageSink& sink);

}  // namespace lrun::launcher
