// In: the strategy that the program or the launcher asks for. Out: its name after checks, and the object that trains a
// wrapped module. Called by the session.
#include "runtime/session/strategy.h"

#include <lrun/error.h>
#include <lrun/gradient_sync.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "process/progress.h"

namespace lrun::detail {
namespace {

/// Horovod's averages as ddp does, and scales learning rates.
constexpr std::array<std::string_view, 6> kOwn = {"ddp", "dp", "ddp2", "ddp_sharded", "horovod", "single"};
/// Under these names lrun gives programs the variables of another library's launcher; liblrun has nothing to do.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOfOtherLibraries = {
    {{"deepspeed", "DeepSpeed: use 'ddp_sharded' or 'ddp'"}, {"tpu", "torch_xla: use 'ddp'"}}};
/// The ranks of a launch do not see these: to them it is ddp.
constexpr std::array<std::string_view, 3> kStartsRanksFromWithin = {"ddp_spawn", "ddp_fork", "ddp_notebook"};

struct Registry {
  std::mutex mutex;
  std::map<std::string, StrategyMaker> makers;
};

Registry& registry() {
  static Registry& instance = *new Registry;  // never destroyed: a session may be global and end later
  return instance;
}

bool is_among(const auto& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

/// For a strategy that other programs use: their library, and liblrun's alternative. Empty for all others.
std::string_view other_library(std::string_view strategy) {
  const auto found = std::ranges::find(kOfOtherLibraries, strategy, [](const auto& entry) { return entry.first; });
  return found == kOfOtherLibraries.end() ? std::string_view() : found->second;
}

/// Names of lrun's own strategies, which no program may register.
bool is_reserved(const std::string& name) {
  return is_among(kOwn, name) || is_among(kStartsRanksFromWithin, name) || !other_library(name).empty();
}

std::vector<std::string> known_names() {
  std::vector<std::string> names(kOwn.begin(), kOwn.end());
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [name, maker] : all.makers) names.push_back(name);
  return names;
}

std::string ranks(int count) { return std::to_string(count) + " ranks"; }

/// Lrun's own strategies determine the number of processes.
void require_devices_fit(const std::string& name, const World& world, std::size_t devices) {
  if (name == "single" && world.world_size > 1) {
    throw Unsupported("strategy 'single' is for one rank, and there are " + std::to_string(world.world_size) +
                      ": use 'ddp'");
  }
  if (name == "dp" && world.world_size > 1) {
    throw Unsupported("strategy 'dp' is one process on one node, and there are " + ranks(world.world_size) +
                      ": use 'ddp2' (dp inside every node) or 'ddp'");
  }
  if (name == "ddp2" && world.local_world_size > 1) {
    throw Unsupported("strategy 'ddp2' is one process a node with all its devices, and this node has " +
                      ranks(world.local_world_size) + ": start one (lrun --strategy ddp2 does), or use 'ddp'");
  }
  if (!splits_batches(name) && devices > 1) {
    throw Unsupported("strategy '" + name + "' uses one device a process, and this one has " + std::to_string(devices) +
                      ": use 'dp' or 'ddp2'");
  }
}

/// For a launcher that watches whether the training goes on. One reporter per thread: ranks may be threads.
void tell_progress() {
  static thread_local ProgressReporter teller(std::getenv(kProgressVariable));
  teller.step();
}

}  // namespace
}  // namespace lrun::detail

namespace lrun {

Strategy::~Strategy() = default;

void Strategy::begin_forward() {
  detail::tell_progress();
  place_module();
  prepare_forward();
}

void Strategy::attempt(const std::function<void()>& step) {
  GradientSync* const sync = gradient_sync();
  sync == nullptr ? step() : sync->attempt(step);
}

void Strategy::place_module() {}

bool Strategy::compares_batches() const { return false; }

void Strategy::look_at_batch(const std::vector<at::Tensor>&) {}

void Strategy::broadcast_buffers() {}

NoSyncGuard Strategy::no_sync() { throw Unsupported("this strategy has no no_sync(): it overrides no such function"); }

GradientSync* Strategy::gradient_sync() { return nullptr; }

Replicas* Strategy::replicas() { return nullptr; }

void register_strategy(const std::string& name, StrategyMaker maker) {
  if (name.empty()) throw std::invalid_argument("a strategy needs a name");
  if (!maker) throw std::invalid_argument("strategy '" + name + "' needs a function that makes it");
  if (detail::is_reserved(name)) {
    throw std::invalid_argument("strategy '" + name + "' is lrun's own: register yours under another name");
  }
  detail::Registry& all = detail::registry();
  const std::lock_guard lock(all.mutex);
  if (!all.makers.emplace(name, std::move(maker)).second) {
    throw std::invalid_argument("strategy '" + name + "' is registered already");
  }
}

}  // namespace lrun

namespace lrun::detail {

StrategyMaker registered_strategy(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.makers.find(name);
  return found == all.makers.end() ? nullptr : found->second;
}

bool splits_batches(const std::string& strategy) { return strategy == "dp" || strategy == "ddp2"; }

std::string choose_strategy(const std::string& asked, const World& world, std::size_t devices) {
  const std::string& given = !asked.empty() ? asked : world.strategy;
  std::string name = given.empty() ? "ddp" : given;
  const auto names = known_names();
  if (is_among(names, name)) {
    require_devices_fit(name, world, devices);
    return name;
  }
  if (is_among(kStartsRanksFromWithin, name)) {
    throw Unsupported("strategy '" + name +
                      "' is for programs that start their ranks by lrun::launch(), and this session is not in a "
                      "function that it runs: use 'ddp'");
  }
  if (const std::string_view library = other_library(name); !library.empty()) {
    throw Unsupported("strategy '" + name + "' is for programs written for " + std::string(library));
  }
  throw Unsupported("'" + name + "' is not a strategy: " + nearest_hint(name, names, "there is " + join_words(names)));
}

}  // namespace lrun::detail
