#include "runtime/banner.h"

#include <fmt/format.h>
#include <lrun/batch.h>

#include <cmath>

#include "base/nearest.h"

namespace lrun {

std::string describe_session(const World& world, std::string_view strategy, std::string_view backend,
                             const std::vector<std::string>& devices, std::uint64_t seed) {
  const std::string over = world.world_size == 1 ? "" : fmt::format(" over {}", backend);
  return fmt::format("lrun: {}{}, {} {} on {} {}, {} {}, seed {}", strategy, over, world.world_size,
                     world.world_size == 1 ? "rank" : "ranks", world.nodes, world.nodes == 1 ? "node" : "nodes",
                     devices.size() == 1 ? "device" : "devices", join_words(devices, ", "), seed);
}

std::string describe_batch_size(std::int64_t loader_batch, int world_size, std::size_t devices) {
  const std::string split = devices == 1 ? ""
                                         : fmt::format(", at most {} on each of {} devices",
                                                       split_evenly(loader_batch, devices).front(), devices);
  if (world_size == 1) {
    return fmt::format("lrun: effective batch size {}{}; a learning rate found with {} in one process stays as it is",
                       loader_batch, split, loader_batch);
  }
  return fmt::format(
      "lrun: effective batch size {} ({} samples x {} ranks{}); a learning rate found with {} in one process is to be "
      "multiplied by {} (linear rule, with warm-up) or {:.3g} (square root, for Adam and its like)",
      loader_batch * world_size, loader_batch, world_size, split, loader_batch, world_size, std::sqrt(world_size));
}

}  // namespace lrun
