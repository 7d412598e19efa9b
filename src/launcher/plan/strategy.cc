#include "plan/strategy.h"

#include <cstddef>

namespace lrun::launcher {
namespace {

using enum StrategyFacts::Processes;

/// In the order of the enumeration.
constexpr StrategyFacts kStrategies[] = {
    {.name = "single"},
    {.name = "ddp"},
    {.name = "dp",
     .processes = kOneInAll,
     .without_liblrun = "on one device",
     .python_instead = "DistributedDataParallel"},
    {.name = "ddp2",
     .processes = kOnePerNode,
     .without_liblrun = "on one device of each node",
     .python_instead = "DistributedDataParallel"},
    {.name = "ddp_sharded", .without_liblrun = "without sharding", .python_instead = "FSDP or ZeroRedundancyOptimizer"},
    {.name = "ddp_spawn", .processes = kOnePerNode, .starts_ranks_from_code = true},
    {.name = "ddp_fork", .processes = kOnePerNode, .starts_ranks_from_code = true},
    {.name = "ddp_notebook", .processes = kOnePerNode, .starts_ranks_from_code = true},
    {.name = "deepspeed"},
    {.name = "horovod"},
    {.name = "tpu"},
};
static_assert(kStrategies[static_cast<std::size_t>(Strategy::kTpu)].name == "tpu");

}  // namespace

const StrategyFacts& facts_of(Strategy strategy) { return kStrategies[static_cast<std::size_t>(strategy)]; }

std::string text_of(Strategy strategy) { return std::string(facts_of(strategy).name); }

std::optional<Strategy> find_strategy(std::string_view name) {
  for (const StrategyFacts& facts : kStrategies) {
    const auto strategy = static_cast<Strategy>(&facts - kStrategies);
    if (facts.name == name && strategy != Strategy::kSingle) return strategy;
  }
  return std::nullopt;
}

}  // namespace lrun::launcher
