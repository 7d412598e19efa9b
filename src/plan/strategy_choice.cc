#include "plan/strategy_choice.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/user_error.h"

namespace lrun {
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
  const auto near = nearest_word(name, known);
  throw UserError("unknown strategy '" + name + "'",
                  near ? "did you mean '" + *near + "'?" : "use " + join_words(strategies(), " or "));
}

}  // namespace

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

}  // namespace lrun
