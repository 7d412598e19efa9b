#pragma once

#include "cli/attempt.h"
#include "inspect/run_status.h"

namespace lrun {

/// What a supervised attempt can say about itself now; the fields about its run are left empty.
RunStatus attempt_status(Attempt& attempt, const LogRouter& logs);

}  // namespace lrun
