#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/console_descriptor.h"

namespace lrun::launcher {

/// Remembers which folded lines stand at the end of a terminal, a row each, so that ranks whose copies came later can
/// be added to the line that is already there instead of a second one. Pure: gives the control sequences.
///
/// It must be notified of everything that is written. Output that it cannot place (a line that wraps, a line of another
/// program, another width) makes it forget its rows, and lines are then shown the ordinary way.
class FoldedScreen {
 public:
  using Size = ConsoleDescriptor::Size;

  /// A line was written below all others. \param shown  prefix and text as they stand there, without colours.
  void wrote(std::uint64_t id, const std::string& shown, Size size);
  /// Something else was written.
  void forget() { rows_.clear(); }

  /// A line that is to be redrawn, with all its ranks.
  struct Line {
    std::uint64_t id = 0;
    std::string shown;   ///< without colours and newline
    std::string output;  ///< the same with colours
  };
  /// The bytes that redraw these lines in place and leave the cursor where it was; empty when one of them is not there.
  [[nodiscard]] std::string redraw(const std::vector<Line>& lines, Size size) const;

 private:
  static constexpr std::size_t kMostRows = 20;  ///< worth remembering

  std::deque<std::uint64_t> rows_;  ///< ids, the lowest row last
  Size size_;
};

}  // namespace lrun::launcher
