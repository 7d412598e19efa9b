#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/console_descriptor.h"
#include "inspect/run_status.h"

namespace lrun::launcher {

/// The lines of `lrun status --watch` about these runs, one less than a terminal of this size has: a table with a line
/// for each rank where that fits, otherwise one in which ranks share lines; what is too much even then is cut off with
/// 'and 40 more'. \param remarks  lines below the tables. Pure.
std::vector<std::string> watched_lines(const std::vector<RunStatus>& runs, const std::vector<std::string>& remarks,
                                       std::int64_t now_ms, ConsoleDescriptor::Size size);

/// Lines at the end of a terminal that are drawn again in their place. The cursor is always below them, so that nothing
/// has to be put in order when a signal ends the program. A value.
class WatchedScreen {
 public:
  /// The bytes that draw `lines`, each no wider than the terminal, in the place of the last ones.
  /// \param above  whole lines that stay above them
  std::string draw(const std::string& above, const std::vector<std::string>& lines, ConsoleDescriptor::Size size);

 private:
  std::size_t drawn_ = 0;
  ConsoleDescriptor::Size size_;
};

}  // namespace lrun::launcher
