#pragma once

#include <string>

#include "base/environment.h"
#include "cluster/python_choice.h"

namespace lrun::launcher {

/// The facts about PROGRAM that planning needs. All are empty when there is no such file.
struct ProgramFacts {
  bool executable = false;  ///< found by name on PATH, or by path with execute permission
  std::string first_line;   ///< of a readable file, at most 256 bytes; of an executable one only
                            ///< where it begins with '#!'

  bool there = true;  ///< the file exists, as a program or for an interpreter

  PythonChoice python = {};  ///< that would run it, if it is of Python; look_at_program() does not look for it

  bool operator==(const ProgramFacts&) const = default;
};

/// Looks up `program` as execvp would: a name with a slash is a path, any other is searched on PATH. A name that is not
/// on PATH is also tried in the working directory, because `python name` would find it there.
/// \param folder  the directory in which workers start; empty: the working directory.
ProgramFacts look_at_program(const std::string& program, const Environment& environment,
                             const std::string& folder = {});

}  // namespace lrun::launcher
