// In: PROGRAM and commands of Python. Out: whether Python runs PROGRAM, and commands with a module of Python in the
// place of Python. Called by worker_command() and by what looks at a program.
#include "plan/python_program.h"

#include <algorithm>

#include "base/split.h"
#include "plan/personality.h"

namespace lrun::launcher {
namespace {

/// The Python of a wrapper that is given a module; the end when there is none.
std::vector<std::string>::const_iterator module_in(const std::vector<std::string>& wrapper) {
  for (auto word = wrapper.begin(); word != wrapper.end(); ++word) {
    if (!is_python(*word)) continue;
    const std::vector<std::string> program = parts_of_python({word, wrapper.end()}).program;
    if (!program.empty() && program.front() == "-m") return word;
  }
  return wrapper.end();
}

/// '#!/usr/bin/env python3'
bool is_of_any_python(std::string_view first_line) {
  std::string_view rest = trimmed(first_line.substr(2));
  const std::string_view program = cut(rest, ' ');
  const std::string_view word = trimmed(rest);
  return program.substr(program.rfind('/') + 1) == "env" && (word == "python" || word == "python3");
}

/// A debugger of Python runs a script in its own Python.
bool is_left_to_first_line(const LaunchRequest& request, const ProgramFacts& program) {
  const bool may_start = request.command.front().find('/') != std::string::npos && program.executable &&
                         program.first_line.starts_with("#!");
  return may_start && !is_of_any_python(program.first_line) && !request.setup.debug_rank.given();
}

}  // namespace

bool is_python(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  for (const std::string_view name : {"python", "pypy"}) {
    if (!program.starts_with(name)) continue;
    const std::string_view version = program.substr(name.size());
    const bool is_version = !version.empty() && version.front() >= '0' && version.front() <= '9';
    return version.empty() || (is_version && version.find(' ') == std::string_view::npos);  // a command line in quotes
  }
  return false;
}

std::string path_of_module(std::string name) {
  std::replace(name.begin(), name.end(), '.', '/');
  return name;
}

PythonCommand parts_of_python(const std::vector<std::string>& command) {
  PythonCommand parts{{command.front()}, {}};
  auto word = command.begin() + 1;
  for (; word != command.end() && word->size() > 1 && word->starts_with('-'); ++word) {
    // Options of one letter may share a word. These four end it: the rest of the word, else the next word, is theirs.
    const std::size_t last = word->starts_with("--") ? std::string::npos : word->find_first_of("cmWX");
    if (last != std::string::npos && ((*word)[last] == 'c' || (*word)[last] == 'm')) {
      if (last > 1) parts.python.push_back(word->substr(0, last));
      parts.program.push_back({'-', (*word)[last]});
      if (last + 1 < word->size()) parts.program.push_back(word->substr(last + 1));
      ++word;
      break;
    }
    parts.python.push_back(*word);
    const bool takes_next = *word == "--check-hash-based-pycs" || last + 1 == word->size();
    if (takes_next && word + 1 != command.end()) parts.python.push_back(*++word);
  }
  parts.program.insert(parts.program.end(), word, command.end());
  return parts;
}

bool runs_python_module(const std::vector<std::string>& wrapper) { return module_in(wrapper) != wrapper.end(); }

std::vector<std::string> in_place_of_python(const std::vector<std::string>& wrapper,
                                            const std::vector<std::string>& program) {
  const auto python = module_in(wrapper);
  const PythonCommand module = parts_of_python({python, wrapper.end()});
  const PythonCommand own = is_python(program.front()) ? parts_of_python(program) : PythonCommand{{""}, program};
  std::vector<std::string> words(wrapper.begin(), python);
  words.insert(words.end(), module.python.begin(), module.python.end());
  // 'python3 -m coverage' names the module, and not another Python than the one that was chosen for the program.
  const bool is_any = *python == "python3" || *python == "python";
  if (is_any && is_python(program.front())) words[static_cast<std::size_t>(python - wrapper.begin())] = program.front();
  words.insert(words.end(), own.python.begin() + 1, own.python.end());
  words.insert(words.end(), module.program.begin(), module.program.end());
  words.insert(words.end(), own.program.begin(), own.program.end());
  return words;
}

bool names_python(std::string_view first_line) {
  if (!first_line.starts_with("#!")) return false;
  std::string_view rest = trimmed(first_line.substr(2));
  std::string_view word = cut(rest, ' ');
  const bool is_env = word.substr(word.rfind('/') + 1) == "env";
  const auto is_for_env = [](std::string_view text) {
    return text.empty() || text.starts_with('-') || text.find('=') != std::string_view::npos;
  };
  if (is_env) word = cut(rest, ' ');
  while (is_env && is_for_env(word) && !rest.empty()) word = cut(rest, ' ');
  return is_python(word);
}

bool is_given_to_python(const LaunchRequest& request, const ProgramFacts& program) {
  if (request.run_path) return true;
  if (request.no_python) return false;
  if (request.module || personality_of(request.compat).every_program_is_python) return true;
  if (request.command.front().ends_with(".py")) return !is_left_to_first_line(request, program);
  return !program.executable && names_python(program.first_line);
}

std::optional<PythonChoice> python_of(const LaunchRequest& request, const ProgramFacts& program) {
  if (!is_given_to_python(request, program)) return std::nullopt;
  const PythonChoice& choice = program.python;
  const bool is_elsewhere = !choice.is_named && enters_container(request.setup.wrappers);
  return is_elsewhere ? PythonChoice{.reason = "PATH in the container"} : choice;
}

bool is_file_of_python(const LaunchRequest& request, const ProgramFacts& program) {
  const std::string& name = request.command.front();
  if (is_given_to_python(request, program) || is_python(name)) return true;
  return name.find('/') != std::string::npos && names_python(program.first_line);
}

bool is_python_program(const LaunchRequest& request, const ProgramFacts& program) {
  return is_given_to_python(request, program) || is_python(request.command.front()) || names_python(program.first_line);
}

}  // namespace lrun::launcher
