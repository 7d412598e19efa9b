#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/spelling.h"

namespace lrun::launcher {

/// What stands on a command line, one value per flag.
struct OptionValues {
  /// In the table's order; of a flag that was given twice the last value, of a repeatable one all in their order.
  std::vector<GivenValue> given;
  std::vector<std::string> command;   ///< PROGRAM and its arguments, untouched
  std::vector<std::string> warnings;  ///< one line for each flag that was given twice and differs
};

/// Collects the values of a line: switches are counted.
OptionValues collect_values(const SpelledLine& line, const std::vector<std::string>& words);

}  // namespace lrun::launcher
