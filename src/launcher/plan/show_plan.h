#pragma once

#include <string>

#include "base/environment.h"
#include "plan/launch_plan.h"

namespace lrun::launcher {

/// The plan for people (--dry-run). It fits a screen also for many ranks, and ends with a newline. Inherited variables
/// are not shown.
std::string show_plan_text(const LaunchPlan& plan, const Environment& environment);

/// The plan for programs (--dry-run=json): complete, `schema` 1, one JSON object and a newline. A value that the start
/// decides (MASTER_PORT) is null.
std::string show_plan_json(const LaunchPlan& plan, const Environment& environment);

/// One of the two, as --dry-run asks.
std::string show_plan(const LaunchPlan& plan, const Environment& environment, DryRun format);

}  // namespace lrun::launcher
