#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/flags.h"

namespace lrun::launcher {

/// The options of a command line with every spelling resolved, and the place of PROGRAM.
struct SpelledLine {
  /// In the order of the line. The origin is the name as typed, with a prefix completed. The text of a switch is empty,
  /// or '0' of '--core=0'.
  std::vector<GivenValue> options;
  std::size_t program = 0;   ///< index of PROGRAM in the words; the number of words without a PROGRAM
  bool double_dash = false;  ///< '--' stood before PROGRAM
};

/// Reads the words after the command's name up to PROGRAM: unique prefixes, dash and underscore, '--flag=v',
/// '--flag v' and '--flag@0,2 v', glued and combined short options, '-np' as a whole word. This is torchrun's grammar,
/// which CLI11 does not have: it takes the next word for the empty value of '--flag=', and '-np' for '-n p'.
/// The words after PROGRAM are not read. Compat::kHorovodrun adds the options that only horovodrun has.
/// \throws UserError  an unknown or ambiguous option, a value that is missing or that a switch does not take.
SpelledLine spell_out(const std::vector<std::string>& words, Compat compat = Compat::kLrun);

}  // namespace lrun::launcher
