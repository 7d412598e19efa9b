#include "plan/strategy_choice.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/user_error.h"
#include "plan/python_program.h"

namespace lrun::launcher {
namespace {

const std::vector<std::string>& strategies() {
  static const std::vector<std::string> names = {"ddp",       "dp",       "ddp2",         "ddp_sharded",
                                                 "ddp_spawn", "ddp_fork", "ddp_notebook", "deepspeed",
                                                 "horovod",   "tpu",      "single"};
  return names;
}

/// Known names whose work this version cannot do, and what to do meanwhile.
constexpr std::pair<std::string_view, std::string_view> kLater[] = {
    {"fsdp", "use '--strategy ddp'"},
};

void check_name(const std::string& name) {
  std::vector<std::string> known = strategies();
  for (const auto& [later, instead] : kLater) {
    if (name == later) {
      throw UserError("strategy '" + name + "' is not in this version of lrun", std::string(instead));
    }
    known.emplace_back(later);
  }
  for (const std::string& strategy : strategies()) {
    if (name == strategy) return;
  }
  throw choice_error("unknown strategy '" + name + "'", name, known, "use " + join_words(strategies(), " or "));
}

}  // namespace

bool needs_liblrun(std::string_view strategy) {
  return strategy == "dp" || strategy == "ddp2" || strategy == "ddp_sharded";
}

std::string way_without_liblrun(std::string_view strategy) {
  if (strategy == "ddp_sharded") return "without sharding";
  return strategy == "dp" ? "on one device" : "on one device of each node";
}

void check_program(const Setting<std::string>& strategy, const LaunchRequest& request, const ProgramFacts& program) {
  const std::string& name = strategy.value;
  if (!needs_liblrun(name) || request.of_liblrun || !is_python_program(request, program)) return;
  throw UserError(fmt::format("'{}' is carried out by liblrun, and '{}' is a Python program: it would train {}",
                              as_written(strategy), request.command.front(), way_without_liblrun(name)),
                  fmt::format("use '--strategy ddp' and {}, or '--liblrun' for one that starts a program of liblrun",
                              name == "ddp_sharded" ? "FSDP or ZeroRedundancyOptimizer" : "DistributedDataParallel"));
}

bool starts_ranks_from_within(std::string_view strategy) {
  return strategy == "ddp_spawn" || strategy == "ddp_fork" || strategy == "ddp_notebook";
}

Setting<std::string> choose_strategy(const Setting<std::string>& asked, int devices_per_node, int num_nodes) {
  const bool several = devices_per_node > 1 || num_nodes > 1;
  if (asked.value.empty() || asked.value == "auto") {
    return {several ? "ddp" : "single", asked.source, asked.origin};
  }
  check_name(asked.value);
  if (asked.value == "single" && several) {
    throw UserError("strategy 'single' is for one device, and " + std::to_string(devices_per_node) +
                        (num_nodes > 1 ? " on each of " + std::to_string(num_nodes) + " nodes" : "") +
                        " were asked for",
                    "use '--strategy ddp'");
  }
  return asked;
}

}  // namespace lrun::launcher
