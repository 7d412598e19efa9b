#pragma once

#include <string>
#include <string_view>

#include "base/environment.h"
#include "cluster/program_facts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// The Python that lrun gives programs to: PYTHON_EXEC, else 'python3'.
std::string python_of(const Environment& environment);

/// '/usr/bin/python3.11', 'python', 'pypy3'.
bool is_python(std::string_view program);

/// '#!/usr/bin/python3', '#!/usr/bin/env -S VAR=1 python3 -u'.
bool names_python(std::string_view first_line);

/// lrun runs PROGRAM with Python; see worker_command().
bool is_given_to_python(const LaunchRequest& request, const ProgramFacts& program);

/// PROGRAM is a Python program as far as can be seen: it is given to Python, is Python itself, or its first line names
/// Python. Programs that a shell script or a wrapper starts are not looked at.
bool is_python_program(const LaunchRequest& request, const ProgramFacts& program);

}  // namespace lrun::launcher
