#pragma once

#include <span>

#include "cli/flags.h"

namespace lrun::launcher {

// The parts of flag_table(). Each is in the file of its name, with the functions that read its values.

std::span<const Flag> worker_flags();
std::span<const Flag> training_flags();
std::span<const Flag> node_flags();
std::span<const Flag> program_flags();
std::span<const Flag> output_flags();
std::span<const Flag> run_flags();
std::span<const Flag> information_flags();
/// Options of torchrun that lrun only accepts: kNotInThisVersion.
std::span<const Flag> torchruns_flags();

}  // namespace lrun::launcher
