#pragma once

#include <string>
#include <vector>

#include "inspect/run_status.h"
#include "run/attempt.h"

namespace lrun::launcher {

/// True where the workers are Python, whose stacks can be read undisturbed.
bool runs_python(const LaunchPlan& plan);

/// True where a worker runs, and none that runs has printed anything for as long as `limit`.
bool are_quiet(const Attempt& attempt, const LogRouter& logs, Duration limit);

/// The present state of a supervised attempt; the fields about its run are left empty.
RunStatus attempt_status(Attempt& attempt, const LogRouter& logs);

/// The lines that -v prints about an attempt that has started; -vv also prints `debug`.
struct AttemptText {
  std::vector<std::string> info;
  std::vector<std::string> debug;
};
AttemptText describe_start(const LaunchPlan& plan, const Attempt& attempt, const std::string& program,
                           const std::string& run_folder);

}  // namespace lrun::launcher
