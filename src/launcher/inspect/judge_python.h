#pragma once

#include <vector>

#include "inspect/judge_machine.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// Adds what is wrong with Python and its torch, also for the GPUs and the driver of this machine. No Python, or one
/// without torch, is no fault: programs may be C++. Pure.
void judge_python(const MachineFacts& facts, std::vector<Finding>& findings);

}  // namespace lrun::launcher
