#pragma once

#include <lrun/world.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lrun {

/// 'lrun: ddp over shm, 8 ranks on 2 nodes, device cpu, seed 0', without a line end.
std::string describe_session(const World& world, std::string_view strategy, std::string_view backend,
                             std::string_view device, std::uint64_t seed);

/// What a loader's batch means for one optimizer step and for the learning rate: linear scaling with warm-up (Goyal et
/// al., arXiv 1706.02677) or, for Adam and its like, by the square root.
std::string describe_batch_size(std::int64_t loader_batch, int world_size);

}  // namespace lrun
