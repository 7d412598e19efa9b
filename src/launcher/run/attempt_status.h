#pragma once

#include <string>
#include <vector>

#include "inspect/run_status.h"
#include "run/attempt.h"

namespace lrun::launcher {

/// What a supervised attempt can say about itself now; the fields about its run are left empty.
RunStatus attempt_status(Attempt& attempt, const LogRouter& logs);

/// What -v tells about an attempt that has started, a line each; -vv also tells `debug`.
struct AttemptWords {
  std::vector<std::string> info;
  std::vector<std::string> debug;
};
AttemptWords start_in_words(const LaunchPlan& plan, const Attempt& attempt, const std::string& program,
                            const std::string& run_folder);

}  // namespace lrun::launcher
