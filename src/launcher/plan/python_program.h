#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/program_facts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// '/usr/bin/python3.11', 'python', 'pypy3'.
bool is_python(std::string_view program);

/// '#!/usr/bin/python3', '#!/usr/bin/env -S VAR=1 python3 -u'.
bool names_python(std::string_view first_line);

/// 'pkg/train' of the module 'pkg.train'
std::string path_of_module(std::string name);

/// The parts of a command of Python: 'python3 -um pkg.train 3' is {python3, -u} and {-m, pkg.train, 3}.
struct PythonCommand {
  std::vector<std::string> python;   ///< Python and its own options
  std::vector<std::string> program;  ///< a script, '-m' and a module, or '-c' and a text; then arguments. May be empty.
};

/// \param command  begins with Python
PythonCommand parts_of_python(const std::vector<std::string>& command);

/// The wrapper is or starts Python with a module: 'python3 -m cProfile -o out', 'nice python3 -m coverage run -p'. Such
/// modules take a script or '-m MODULE', as Python does.
bool runs_python_module(const std::vector<std::string>& wrapper);

/// Such a wrapper with a program: 'python3 -m coverage run -p' and 'python3 -u x.py' are
/// 'python3 -u -m coverage run -p x.py'. Python is the wrapper's, but 'python3' and 'python' stand for the program's. A
/// program that is not Python follows as it is.
std::vector<std::string> in_place_of_python(const std::vector<std::string>& wrapper,
                                            const std::vector<std::string>& program);

/// lrun runs PROGRAM with Python: a module, a name that ends in '.py', a file without execute permission whose first
/// line names Python, and under torchrun's personality every program.
///
/// A script that was typed as a path, may be executed and has a first line '#!…' is left to that line, as in a shell:
/// './train.py'. '#!/usr/bin/env python3' names no certain Python, so that lrun's runs it.
bool is_given_to_python(const LaunchRequest& request, const ProgramFacts& program);

/// The Python that lrun runs PROGRAM with; empty: none. In a container it is 'python3' of the PATH there, unless the
/// user has named one.
std::optional<PythonChoice> python_of(const LaunchRequest& request, const ProgramFacts& program);

/// PROGRAM is of Python in such a way that a module of Python can run it: by its path if it is a script.
bool is_file_of_python(const LaunchRequest& request, const ProgramFacts& program);

/// PROGRAM is a Python program as far as can be seen: it is given to Python, is Python itself, or its first line names
/// Python. Programs that a shell script or a wrapper starts are not looked at.
bool is_python_program(const LaunchRequest& request, const ProgramFacts& program);

}  // namespace lrun::launcher
