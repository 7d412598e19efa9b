#pragma once

#include <string>
#include <vector>

#include "inspect/run_status.h"

namespace lrun::launcher {

/// Ranks that share a line of the table, in which numbers that differ are a range: '98-101%'.
enum class RankFold {
  kNone,   ///< none do
  kAlike,  ///< those in the same state, with the same last line, that use about as much
  kState,  ///< those in the same state whose last lines differ in numbers only; ranks that do not simply run come first
};

/// A line that names the columns, and the lines below it, without newlines. A column of which nothing is known is left
/// out.
std::vector<std::string> rank_table(const std::vector<WorkerStatus>& workers, RankFold fold);

}  // namespace lrun::launcher
