#include "logs/line_gap.h"

#include <fmt/format.h>

#include "base/nearest.h"

namespace lrun::launcher {

std::string LineGap::close() {
  is_open_ = false;
  std::string text;
  if (const std::uint64_t count = std::exchange(lines_, 0); count > 0) {
    text += fmt::format("... {} left out here, all in '{}'\n", counted(count, "line"), place_of_all_.value_or(""));
  }
  if (const std::uint64_t count = std::exchange(own_lines_, 0); count > 0) {
    text += fmt::format("... {} of lrun itself left out here\n", counted(count, "line"));
  }
  return text;
}

}  // namespace lrun::launcher
