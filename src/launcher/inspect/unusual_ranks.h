#pragma once

#include <vector>

#include "inspect/run_status.h"

namespace lrun::launcher {

/// Marks ranks of a run that differ from its others here: 'quiet', 'low CPU' and 'high CPU' in WorkerStatus::unusual.
///
/// Only running ranks are compared, at least three of one run, and each has lived for half a minute. 'quiet': it
/// printed something once, but nothing for half a minute and four times as long as the median rank. 'low CPU' or 'high
/// CPU': its CPU use is more than 40 points and half of the median's away from the median. Nothing is marked where that
/// holds of more than a quarter of the ranks (and of more than one): then it is no exception. Pure.
void mark_unusual(std::vector<RunStatus>& runs);

}  // namespace lrun::launcher
