// In: the options of launch(), the environment, and the machine's CPUs. Out: the ranks of this node and their
// environment. Pure; called by launch().
#include "runtime/launch/placement.h"

#include <lrun/error.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "base/nearest.h"
#include "base/numeric_address.h"

namespace lrun::detail {
namespace {

bool has(const World::Variables& variables, std::string_view name) { return variables.find(name) != variables.end(); }

std::string text_of(const World::Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

bool starts_processes(std::string_view strategy) {
  return strategy == "ddp_spawn" || strategy == "ddp_fork" || strategy == "ddp_notebook";
}

LaunchMethod spawn_method(bool interactive) {
  if (!interactive) return LaunchMethod::kSpawn;
  throw Unsupported(
      "strategy 'ddp_spawn' executes the program again, and this is an interactive interpreter: use 'ddp_notebook'");
}

/// \throws Unsupported  ranks cannot be started in this way from here.
LaunchMethod method_of(const std::string& strategy, bool interactive) {
  if (strategy.empty() || strategy == "auto") return interactive ? LaunchMethod::kFork : LaunchMethod::kSpawn;
  if (strategy == "ddp_spawn") return spawn_method(interactive);
  if (strategy == "ddp_fork" || strategy == "ddp_notebook") return LaunchMethod::kFork;
  if (strategy == "ddp") {
    throw Unsupported(interactive
                          ? "strategy 'ddp' is started from outside the program, which an interactive "
                            "interpreter cannot be: use 'ddp_notebook'"
                          : "strategy 'ddp' is started from outside the program: 'lrun --strategy ddp PROGRAM'; "
                            "from inside it is 'ddp_spawn' or 'ddp_fork'");
  }
  throw Unsupported("launch() cannot start ranks for strategy '" + strategy + "': " +
                    nearest_hint(strategy, {"ddp_spawn", "ddp_fork", "ddp_notebook"},
                                 "it knows 'ddp_spawn', 'ddp_fork' and 'ddp_notebook'"));
}

/// This program was started on every node with the address of the first, and no launcher counts the ranks.
bool names_its_node(const World::Variables& variables) {
  return has(variables, "NODE_RANK") && has(variables, "MASTER_ADDR") && has(variables, "MASTER_PORT") &&
         !has(variables, "RANK") && !has(variables, "LOCAL_RANK");
}

int number_of(const World::Variables& variables, std::string_view name, int least, int most) {
  const std::string text = text_of(variables, name);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string blame = "environment variable '" + std::string(name) + "' is '" + text + "', ";
  if (error != std::errc() || end != text.data() + text.size()) throw BadEnvironment(blame + "not a number");
  if (number < least || number > most) {
    throw BadEnvironment(blame + "not between " + std::to_string(least) + " and " + std::to_string(most));
  }
  return number;
}

std::vector<std::string> devices_of(const LaunchOptions& options, const World& world) {
  if (!options.devices) return world.devices.empty() ? std::vector<std::string>{"cpu"} : world.devices;
  if (*options.devices < 1) throw std::invalid_argument("a launch needs at least one device");
  const auto count = static_cast<std::size_t>(*options.devices);
  if (world.devices.empty()) return std::vector<std::string>(count, "cpu");
  if (count > world.devices.size()) {
    throw BadEnvironment("environment variable 'LRUN_DEVICES' gives " + std::to_string(world.devices.size()) +
                         " devices, and the program asks for " + std::to_string(count));
  }
  return {world.devices.begin(), world.devices.begin() + *options.devices};
}

int nodes_in(const World::Variables& variables, const LaunchOptions& options, int devices) {
  constexpr int kMost = 1'000'000;
  if (options.num_nodes) return *options.num_nodes;
  if (!has(variables, "WORLD_SIZE")) {
    throw BadEnvironment(
        "environment variable 'NODE_RANK' is set, and nothing tells how many nodes there are: set 'WORLD_SIZE', or "
        "LaunchOptions::num_nodes");
  }
  const int world_size = number_of(variables, "WORLD_SIZE", 1, kMost);
  if (world_size % devices == 0) return world_size / devices;
  throw BadEnvironment("environment variable 'WORLD_SIZE' is " + std::to_string(world_size) +
                       ", not a multiple of the " + std::to_string(devices) + " devices of a node");
}

void place_node(Placement& placement, const World::Variables& variables, const LaunchOptions& options) {
  placement.nodes = nodes_in(variables, options, placement.local_world_size());
  placement.node_rank = number_of(variables, "NODE_RANK", 0, placement.nodes - 1);
  placement.master_address = without_brackets(text_of(variables, "MASTER_ADDR"));
  placement.master_port = static_cast<std::uint16_t>(number_of(variables, "MASTER_PORT", 1, 65'535));
}

/// One process a node, which the launcher counts as its ranks.
void place_below_launcher(Placement& placement, const World& world) {
  placement.nodes = world.world_size;
  placement.node_rank = world.rank;
  placement.master_address = world.master_address;
  placement.master_port = world.master_port;
  placement.uses_agent_store = world.uses_agent_store;
}

/// The environment of this process as a World, where the node's variables are no half of a rank's.
World world_of(World::Variables variables) {
  if (names_its_node(variables)) variables.erase("WORLD_SIZE");
  return World::from_variables(variables);
}

}  // namespace

Placement place_ranks(const LaunchOptions& options, const World::Variables& variables, bool interactive, int cpus) {
  if (options.num_nodes && *options.num_nodes < 1) throw std::invalid_argument("a launch needs at least one node");
  const World world = world_of(variables);
  const bool is_rank = world.source != WorldSource::kAlone;
  Placement placement;
  if (is_rank && !starts_processes(world.strategy)) return placement;  // of a launcher that has started all ranks
  placement.method = method_of(options.strategy.value_or(world.strategy), interactive);
  placement.devices = devices_of(options, world);
  if (is_rank) {
    place_below_launcher(placement, world);
  } else if (names_its_node(variables)) {
    place_node(placement, variables, options);
  } else if (options.num_nodes.value_or(1) > 1) {
    throw BadEnvironment(
        "environment variables 'MASTER_ADDR', 'MASTER_PORT' and 'NODE_RANK' have to tell where this node "
        "stands among the " +
        std::to_string(*options.num_nodes));
  }
  placement.run_id = world.run_id;
  placement.restart_count = world.restart_count;
  placement.max_restarts = world.max_restarts;
  placement.backend = options.backend.empty() ? world.backend : options.backend;
  placement.seed = options.seed ? options.seed : world.seed;
  if (!has(variables, "OMP_NUM_THREADS")) placement.threads = std::max(1, cpus / placement.local_world_size());
  return placement;
}

std::vector<std::pair<std::string, std::string>> rank_variables(const Placement& placement, int local_rank,
                                                                std::uint16_t port) {
  const std::string rank = std::to_string(placement.rank(local_rank));
  const std::string world = std::to_string(placement.world_size());
  const std::string node = std::to_string(placement.node_rank);
  std::vector<std::pair<std::string, std::string>> variables = {
      {"RANK", rank},
      {"WORLD_SIZE", world},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(placement.local_world_size())},
      {"NODE_RANK", node},
      {"GROUP_RANK", node},
      {"GROUP_WORLD_SIZE", std::to_string(placement.nodes)},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", world},
      {"MASTER_ADDR", placement.master_address},
      {"MASTER_PORT", std::to_string(port)},
      {"TORCHELASTIC_RUN_ID", placement.run_id.empty() ? "launch" : placement.run_id},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(placement.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(placement.max_restarts)},
      {"TORCHELASTIC_USE_AGENT_STORE", placement.uses_agent_store ? "True" : "False"},
      {"LRUN_STRATEGY", "ddp"},
      {"LRUN_DEVICES", placement.devices[static_cast<std::size_t>(local_rank)]},
  };
  if (!placement.backend.empty()) variables.emplace_back("LRUN_PROCESS_GROUP_BACKEND", placement.backend);
  if (placement.seed) variables.emplace_back("LRUN_SEED", std::to_string(*placement.seed));
  if (placement.threads > 0) variables.emplace_back("OMP_NUM_THREADS", std::to_string(placement.threads));
  return variables;
}

}  // namespace lrun::detail
