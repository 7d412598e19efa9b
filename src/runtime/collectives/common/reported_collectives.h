#pragma once

#include <lrun/collectives.h>

#include <memory>

#include "process/progress.h"

namespace lrun::detail {

/// The same group, which reports to the launcher when this rank waits in one of its operations, or in one of a
/// subgroup, so that it can tell who waits for whom. An operation on a GPU is a wait only as far as it blocks the
/// thread.
std::unique_ptr<Collectives> report_calls(std::unique_ptr<Collectives> group,
                                          std::shared_ptr<const CallReporter> reporter);

}  // namespace lrun::detail
