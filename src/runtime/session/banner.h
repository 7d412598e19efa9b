#pragma once

#include <lrun/world.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::detail {

/// 'lrun: ddp over shm, 8 ranks on 2 nodes, device cpu, seed 0', without a line end; with several devices a process
/// 'lrun: ddp2 over shm, 2 ranks on 2 nodes, devices cpu, cpu, seed 0'; nothing is over anything in a world of one.
/// \param devices  of this process.
std::string describe_session(const World& world, std::string_view strategy, std::string_view backend,
                             const std::vector<std::string>& devices, std::uint64_t seed);

/// The meaning of a loader's batch for one optimizer step and for the learning rate: linear scaling with warm-up (Goyal
/// et al., arXiv 1706.02677) or, for Adam and similar optimizers, by the square root.
/// \param devices       of a process: over these a loader's batch is split, which changes neither.
/// \param scales_rates  whether the session's optimizers multiply learning rates themselves.
std::string describe_batch_size(std::int64_t loader_batch, int world_size, std::size_t devices = 1,
                                bool scales_rates = false);

/// The change that strategy 'horovod' made to the learning rates of an optimizer's groups: each of them, or the common
/// one.
std::string describe_learning_rates(const std::vector<double>& before, const std::vector<double>& after, int ranks);

/// The same of a checkpoint's, which were scaled for another number of ranks.
std::string describe_loaded_rates(const std::vector<double>& before, const std::vector<double>& after, int ranks_before,
                                  int ranks);

}  // namespace lrun::detail
