#include "logs/line_gap.h"

#include <fmt/format.h>

namespace lrun::launcher {
namespace {

std::string count_text(std::uint64_t lines) { return fmt::format("... {} {}", lines, lines == 1 ? "line" : "lines"); }

}  // namespace

std::string LineGap::close() {
  is_open_ = false;
  std::string text;
  if (const std::uint64_t count = std::exchange(lines_, 0); count > 0) {
    text += fmt::format("{} left out here, all in '{}'\n", count_text(count), place_of_all_.value_or(""));
  }
  if (const std::uint64_t count = std::exchange(own_lines_, 0); count > 0) {
    text += fmt::format("{} of lrun itself left out here\n", count_text(count));
  }
  return text;
}

}  // namespace lrun::launcher
