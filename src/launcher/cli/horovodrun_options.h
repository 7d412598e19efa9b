#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/spelling.h"

namespace lrun::launcher {

/// One option of horovodrun that lrun does not have under the same name, and its meaning here. The options that both
/// have (-np, -H, --hostfile, --start-timeout, --verbose, ...) are rows of the flag table.
struct HorovodrunOption {
  enum class Meaning {
    kNothing,    ///< lrun always does this
    kRefused,    ///< `what` is the hint what to do instead
    kFlag,       ///< lrun's flag `what`, with the same value
    kText,       ///< the variable `what`, with this value
    kCount,      ///< the same of a whole number, 0 or more
    kNumber,     ///< the same of a number, 0 or more
    kFraction,   ///< the same of a number from 0 to 1
    kMebibytes,  ///< the same of a count; the variable is in bytes
    kLevel,      ///< the same of a level of Horovod's log
    kYes,        ///< a switch: the variable is 1
    kNo,         ///< a switch: the variable is 0
    kSsh,        ///< an option of ssh, `what`, with this value
    kNetwork,    ///< names of network interfaces
  };
  std::string_view names;  ///< all spellings, with blanks between them
  Meaning meaning = Meaning::kNothing;
  std::string_view what = {};
  ValueKind value = ValueKind::kNone;
};

/// The table, in the order of the manual.
std::span<const HorovodrunOption> horovodrun_options();

/// The row of an option as typed, without its value; null when lrun has the option, too.
const HorovodrunOption* find_horovodrun_option(std::string_view name);

/// Adds the option to `line` in its meaning here. \param origin  the name as typed
/// \throws UserError  lrun does not support the option, or not with this value.
void add_horovodrun_option(const HorovodrunOption& option, const std::string& origin, const std::string& value,
                           SpelledLine& line);

}  // namespace lrun::launcher
