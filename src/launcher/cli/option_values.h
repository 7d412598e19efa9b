#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace lrun::launcher {

/// The values of a command line that count.
struct OptionValues {
  std::vector<GivenValue> given;      ///< all values of a repeatable option in their order, the last one of any other
  std::vector<std::string> warnings;  ///< one line for each option that was given twice with different values
};

/// \param line  every value in its order. The text of a switch becomes the number of times that it was given, except
///              where it was given as '--core=0'.
OptionValues collect_values(const std::vector<GivenValue>& line);

}  // namespace lrun::launcher
