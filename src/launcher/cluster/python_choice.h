#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/environment.h"

namespace lrun::launcher {

/// The files that choose_python() looks at. Tests have a host of their own.
struct FileLook {
  std::function<bool(const std::string& path)> exists;
  std::function<bool(const std::string& path)> runs;  ///< a file that may be executed; the path has a slash
  std::function<std::vector<std::string>(const std::string& folder)> names;
  std::function<std::string(const std::string& path)> real;  ///< without links; as it is where there is no such path

  static FileLook of_this_host();
};

/// How this lrun was called.
struct OwnCall {
  std::string typed;   ///< argv[0]
  std::string file;    ///< the program, without links
  std::string folder;  ///< where it was called

  static OwnCall of_this_process();
};

/// A Python that somebody has named, and where: '--python', 'PYTHON_EXEC'. Empty: nobody has.
struct NamedPython {
  std::string program;
  std::string origin;
};

/// The Python of the workers, and why.
struct PythonChoice {
  std::string program = "python3";  ///< as workers start it: a path, or a name for PATH
  std::string path = {};            ///< where it is; empty: nowhere that lrun looks
  std::string reason = "PATH";  ///< or '--python', 'PYTHON_EXEC', 'python -m lrun', 'beside lrun', 'VIRTUAL_ENV', …
  bool is_named = false;        ///< by the user: one of the first three
  bool is_there = true;         ///< on this host, and it may be executed
  std::string warning = {};     ///< about another one that may have been meant

  bool operator==(const PythonChoice&) const = default;
};

/// Chooses in this order:
///
/// 1. `asked`, then PYTHON_EXEC, then the one of 'python -m lrun', which is in LRUN_MODULE_PYTHON;
/// 2. the one beside the lrun that was typed, else beside its file, in a virtual environment or one of conda;
/// 3. the active environment: VIRTUAL_ENV or CONDA_PREFIX, of both the one that is first in PATH;
/// 4. 'python3' of PATH, else 'python3.N', else 'python'.
///
/// An environment that pipx, `uv tool` or `uvx` made for lrun alone holds no training program's packages. It counts
/// after the active one, and only where other packages were added to it; PATH is searched without it.
/// \param environment  of the workers
PythonChoice choose_python(const NamedPython& asked, const Environment& environment, const OwnCall& call,
                           const FileLook& files);

/// The same for this process, on this host.
PythonChoice choose_python_here(const NamedPython& asked, const Environment& environment);

}  // namespace lrun::launcher
