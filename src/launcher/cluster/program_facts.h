#pragma once

#include <string>

#include "base/environment.h"

namespace lrun::launcher {

/// What planning must know about the file that is to be run; empty but for `there` when there is no such file.
struct ProgramFacts {
  bool executable = false;  ///< by name on PATH, or by path with execute permission
  std::string first_line;   ///< of a readable file, without the line's end; at most 256 bytes. Of one that is
                            ///< executable only where it begins with '#!'

  bool there = true;  ///< as a program, or as a file that an interpreter could read

  bool operator==(const ProgramFacts&) const = default;
};

/// Looks at `program` as execvp would: a name with a slash is a path, any other is searched on PATH. A name that PATH
/// lacks is also tried in the working directory, because `python name` would find it there.
/// \param folder  where workers are to start; empty: the working directory.
ProgramFacts look_at_program(const std::string& program, const Environment& environment,
                             const std::string& folder = {});

}  // namespace lrun::launcher
