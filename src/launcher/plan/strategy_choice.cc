#include "plan/strategy_choice.h"

#include <fmt/format.h>

#include "base/user_error.h"
#include "plan/python_program.h"

namespace lrun::launcher {

Setting<Strategy> choose_strategy(const Setting<std::optional<Strategy>>& asked, int devices_per_node, int num_nodes) {
  const bool several = devices_per_node > 1 || num_nodes > 1;
  return {asked.value.value_or(several ? Strategy::kDdp : Strategy::kSingle), asked.source, asked.origin};
}

void check_program(const Setting<Strategy>& strategy, const LaunchRequest& request, const ProgramFacts& program) {
  const StrategyFacts& facts = facts_of(strategy.value);
  if (!facts.needs_liblrun() || request.of_liblrun || !is_python_program(request, program)) return;
  throw UserError(fmt::format("'{}' is carried out by liblrun, and '{}' is a Python program: it would train {}",
                              as_written(strategy), request.command.front(), facts.without_liblrun),
                  fmt::format("use '--strategy ddp' and {}, or '--liblrun' for one that starts a program of liblrun",
                              facts.python_instead));
}

}  // namespace lrun::launcher
