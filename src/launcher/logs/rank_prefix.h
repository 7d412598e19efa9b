#pragma once

#include <string>

namespace lrun::launcher {

/// Digits of the highest rank: 1 for a world of 10, 2 for 11.
int rank_width(int world_size);

/// The prefix of a rank's lines: '[3] ', or '[ 3] ' for a width of 2; coloured by rank for a terminal.
std::string rank_prefix(int rank, int width, bool colour);

}  // namespace lrun::launcher
