#include "logs/rank_prefix.h"

#include <fmt/format.h>

#include <array>

namespace lrun::launcher {

int rank_width(int world_size) {
  int width = 1;
  for (int highest = world_size - 1; highest >= 10; highest /= 10) ++width;
  return width;
}

std::string rank_prefix(int rank, int width, bool colour) {
  if (!colour) return fmt::format("[{:>{}}] ", rank, width);
  // Red is left to errors; black and white may be the background.
  constexpr std::array kColours = {36, 33, 32, 35, 34, 96, 93, 92, 95, 94};
  return fmt::format("\x1b[{}m[{:>{}}]\x1b[0m ", kColours[static_cast<std::size_t>(rank) % kColours.size()], rank,
                     width);
}

}  // namespace lrun::launcher
