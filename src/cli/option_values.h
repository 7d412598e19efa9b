#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/spelling.h"

namespace lrun {

/// What stands on a command line, one value per flag.
struct OptionValues {
  std::vector<GivenValue> given;     ///< in the table's order; of a flag that was given twice the last value
  std::vector<std::string> command;  ///< PROGRAM and its arguments, untouched
};

/// Collects the values of a line: the last one wins, switches are counted.
OptionValues collect_values(const SpelledLine& line, const std::vector<std::string>& words);

}  // namespace lrun
