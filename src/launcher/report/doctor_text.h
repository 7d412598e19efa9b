#pragma once

#include <string>
#include <vector>

#include "inspect/judge_machine.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// What `lrun doctor` says: two lines for each finding, what is wrong and its fix. Notes are left out unless `verbose`,
/// and so is a line for each thing that was looked at. Empty for a healthy machine.
std::string doctor_text(const MachineFacts& facts, const std::vector<Finding>& findings, bool verbose);

/// The same for programs: `schema` 1, 'healthy', 'findings' and 'facts'.
std::string doctor_json(const MachineFacts& facts, const std::vector<Finding>& findings);

}  // namespace lrun::launcher
