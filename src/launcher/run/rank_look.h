#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "inspect/rank_process.h"
#include "inspect/stack_sample.h"
#include "inspect/stack_sampler.h"

namespace lrun::launcher {

/// The outcome of a look: a sample for each process, or why there is none.
using SeenRanks =
    std::function<void(const std::optional<std::vector<StackSample>>& samples, const std::string& problem)>;

/// Looks where ranks are. The loop calls `seen` once, unless the result is destroyed before; `seen` may destroy it.
using LookAtRanks = std::function<std::shared_ptr<void>(EventLoop& loop, const std::vector<RankProcess>& processes,
                                                        LookKind kind, SeenRanks seen)>;

/// A LookAtRanks through `lrun stack`, within the times of stack_request().
std::shared_ptr<void> look_at_ranks(EventLoop& loop, const std::vector<RankProcess>& processes, LookKind kind,
                                    SeenRanks seen);

}  // namespace lrun::launcher
