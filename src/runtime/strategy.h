#pragma once

#include <lrun/world.h>

#include <string>

namespace lrun {

/// The strategy of a session: what the program asks for, else what the launcher says, else ddp.
/// \throws lrun::Unsupported  not in this version (dp, ddp2, …), or not the name of a strategy; the text says what is.
std::string choose_strategy(const std::string& asked, const World& world);

}  // namespace lrun
