#pragma once

#include <string>
#include <vector>

#include "inspect/judge_machine.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// The text of `lrun doctor`: two lines for each finding, the fault and its fix. `verbose` adds the notes, and a line
/// for each fact. Empty for a healthy machine.
std::string doctor_text(const MachineFacts& facts, const std::vector<Finding>& findings, bool verbose);

/// The same for programs: `schema` 1, 'healthy', 'findings' and 'facts'.
std::string doctor_json(const MachineFacts& facts, const std::vector<Finding>& findings);

}  // namespace lrun::launcher
