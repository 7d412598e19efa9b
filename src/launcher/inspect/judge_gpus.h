#pragma once

#include <vector>

#include "inspect/judge_machine.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// The part of judge_machine() about GPUs and their driver. Adds to `findings`.
void judge_gpus(const MachineFacts& facts, std::vector<Finding>& findings);

}  // namespace lrun::launcher
