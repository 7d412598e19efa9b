#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/flags.h"

namespace lrun::launcher {

/// The options of a command line with every spelling resolved, and where PROGRAM begins.
struct SpelledLine {
  struct Option {
    const Flag* flag = nullptr;
    std::string origin;  ///< the name as typed, a prefix completed: '--nproc_per_node', '-np'
    std::string value;   ///< empty for a switch
    std::string ranks;   ///< what stood behind the name's '@'; empty: nothing
  };
  std::vector<Option> options;  ///< in their order
  std::size_t program = 0;      ///< index of PROGRAM in the words; their number when there is none
  bool double_dash = false;     ///< '--' stood before PROGRAM

  [[nodiscard]] bool has_option(std::string_view name) const;
};

/// Reads the words after the command's name up to PROGRAM: unique prefixes, dash and underscore, '--flag=v',
/// '--flag v' and '--flag@0,2 v', glued and combined short options, '-np' as a whole word. This is torchrun's grammar,
/// which no parser library has; nothing after PROGRAM is looked at. For Compat::kHorovodrun also the options that only
/// horovodrun has, as those that they are here. \throws UserError  an unknown or ambiguous option, a value that is
/// missing or too much.
SpelledLine spell_out(const std::vector<std::string>& words, Compat compat = Compat::kLrun);

}  // namespace lrun::launcher
