#pragma once

#include <string>
#include <string_view>

namespace lrun::inline core {

/// Where a program is, found once for all workers as execvp would.
struct ProgramPath {
  std::string path;      ///< to execute, as seen from the folder that the search began in; empty when not found
  int error_number = 0;  ///< ENOENT: nowhere; EACCES: there, but not executable; EISDIR; 0: found

  bool operator==(const ProgramPath&) const = default;
};

/// `name` with a slash is taken as it is; otherwise the folders of `search_path` (the value of PATH; empty:
/// /bin:/usr/bin) are tried in order. A folder in the place of a program is EISDIR. \param folder  where relative names
/// begin; empty: the working folder.
ProgramPath find_program(std::string_view name, std::string_view search_path, std::string_view folder = {});

/// The interpreter in the first line of a script, without arguments ('/bin/sh' of '#!/bin/sh -e'); empty for anything
/// else. A carriage return at its end is kept: it is why such a script cannot run.
std::string interpreter_of(const std::string& path);

}  // namespace lrun::inline core
