#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspect/rank_process.h"
#include "inspect/stack_sample.h"
#include "process/tool_run.h"

namespace lrun::launcher {

/// The outcome of a look: a sample a process, or why there is none.
using SeenRanks = std::function<void(std::optional<std::vector<StackSample>> samples, const std::string& problem)>;

/// Looks where ranks are through `lrun stack`, within 35 seconds, or 5 where it is to be brief.
/// `seen` is called once, by the loop, unless the result is destroyed before; it may destroy it.
std::unique_ptr<ToolRun> look_at_ranks(EventLoop& loop, const std::vector<RankProcess>& processes, bool brief,
                                       SeenRanks seen);

}  // namespace lrun::launcher
