#include "runtime/banner.h"

#include <fmt/format.h>

#include <cmath>

namespace lrun {

std::string describe_session(const World& world, std::string_view strategy, std::string_view backend,
                             std::string_view device, std::uint64_t seed) {
  return fmt::format("lrun: {} over {}, {} {} on {} {}, device {}, seed {}", strategy, backend, world.world_size,
                     world.world_size == 1 ? "rank" : "ranks", world.nodes, world.nodes == 1 ? "node" : "nodes", device,
                     seed);
}

std::string describe_batch_size(std::int64_t loader_batch, int world_size) {
  return fmt::format(
      "lrun: effective batch size {} ({} samples x {} ranks); a learning rate found with {} in one process is to be "
      "multiplied by {} (linear rule, with warm-up) or {:.3g} (square root, for Adam and its like)",
      loader_batch * world_size, loader_batch, world_size, loader_batch, world_size, std::sqrt(world_size));
}

}  // namespace lrun
