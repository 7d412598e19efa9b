#pragma once

#include <string>
#include <string_view>

namespace lrun::detail {

/// Signs of an interactive interpreter, visible from outside.
struct InterpreterFacts {
  std::string program;  ///< path of the program that this process executes
  bool python_prompt =
      false;  ///< Python is in this process and shows a prompt (sys.ps1), as IPython and Jupyter have it

  bool operator==(const InterpreterFacts&) const = default;
};

/// True where code arrives while the process runs: clang-repl, Cling, ROOT, a Jupyter kernel of C++, or a Python
/// prompt. Executing such a program again would not repeat that code. Pure.
bool is_interactive(const InterpreterFacts& facts);

/// Of this process. Asks Python for its prompt, so the caller must hold its lock where there is one, as C++ that Python
/// calls does.
InterpreterFacts interpreter_facts();

}  // namespace lrun::detail
