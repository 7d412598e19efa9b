#pragma once

#include <string>
#include <vector>

#include "inspect/judge_machine.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// The text of `lrun doctor`: two lines for each finding, the fault and its fix, or one line for a healthy machine.
/// `verbose` adds the notes, and a line for each fact. Safe for a terminal.
std::string doctor_text(const MachineFacts& facts, const std::vector<Finding>& findings, bool verbose);

/// The same for programs: `schema` 1, 'healthy', 'findings' and 'facts'.
std::string doctor_json(const MachineFacts& facts, const std::vector<Finding>& findings);

}  // namespace lrun::launcher
