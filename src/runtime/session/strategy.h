#pragma once

#include <lrun/strategy.h>
#include <lrun/world.h>

#include <cstddef>
#include <string>

namespace lrun::detail {

/// The strategy of a session: the program's, else the launcher's, else ddp.
/// \param devices  of this process.
/// \throws lrun::Unsupported  not in this version, not the name of a strategy, or not for this world; the text names
///                            those that are.
std::string choose_strategy(const std::string& asked, const World& world, std::size_t devices = 1);

/// True for the strategies that split each batch over the devices of a process.
bool splits_batches(const std::string& strategy);

/// The maker that was registered under this name; empty for lrun's own strategies.
StrategyMaker registered_strategy(const std::string& name);

}  // namespace lrun::detail
