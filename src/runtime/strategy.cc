#include "runtime/strategy.h"

#include <lrun/error.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"

namespace lrun {
namespace {

const std::vector<std::string>& later_strategies() {
  static const std::vector<std::string> names = {"dp", "ddp2", "horovod", "deepspeed", "tpu"};
  return names;
}

bool is_later(const std::string& name) {
  const auto& names = later_strategies();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of those the ranks of a launch see nothing: to them it is ddp.
bool starts_ranks_from_within(const std::string& name) {
  return name == "ddp_spawn" || name == "ddp_fork" || name == "ddp_notebook";
}

}  // namespace

std::string choose_strategy(const std::string& asked, const World& world) {
  const std::string& name = !asked.empty() ? asked : world.strategy;
  if (name.empty() || name == "ddp") return "ddp";
  if (name == "ddp_sharded") return name;
  if (name == "single") {
    if (world.world_size == 1) return name;
    throw Unsupported("strategy 'single' is for one rank, and there are " + std::to_string(world.world_size) +
                      ": use 'ddp'");
  }
  if (starts_ranks_from_within(name)) {
    throw Unsupported("strategy '" + name +
                      "' is for programs that start their ranks by lrun::launch(), and this session " +
                      "is not in a function that it runs: use 'ddp'");
  }
  if (is_later(name))
    throw Unsupported("strategy '" + name + "' is not in this version of liblrun: it has 'ddp' and 'ddp_sharded'");
  const auto near = nearest_word(name, {"ddp", "ddp_sharded", "single"});
  throw Unsupported("'" + name + "' is not a strategy" +
                    (near ? ": did you mean '" + *near + "'?" : ": there are 'ddp' and 'ddp_sharded'"));
}

}  // namespace lrun
