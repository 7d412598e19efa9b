#include "runtime/launch/interpreter.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace lrun::detail {
namespace {

bool is_of_python() {
  using IsInitialized = int (*)();
  using GetObject = void* (*)(const char*);
  auto* const is_initialized = reinterpret_cast<IsInitialized>(::dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  auto* const get_object = reinterpret_cast<GetObject>(::dlsym(RTLD_DEFAULT, "PySys_GetObject"));
  auto* const holds_lock = reinterpret_cast<IsInitialized>(::dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  if (is_initialized == nullptr || get_object == nullptr || holds_lock == nullptr) return false;
  return is_initialized() != 0 && holds_lock() != 0 && get_object("ps1") != nullptr;
}

}  // namespace

bool is_interactive(const InterpreterFacts& facts) {
  constexpr std::array kInterpreters{std::string_view("clang-repl"), std::string_view("cling"),
                                     std::string_view("root.exe"), std::string_view("xcpp"), std::string_view("xeus")};
  const std::string_view path(facts.program);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const bool named = std::any_of(kInterpreters.begin(), kInterpreters.end(),
                                 [name](std::string_view interpreter) { return name.starts_with(interpreter); });
  return named || facts.python_prompt;
}

InterpreterFacts interpreter_facts() {
  std::error_code error;
  return {std::filesystem::read_symlink("/proc/self/exe", error).string(), is_of_python()};
}

}  // namespace lrun::detail
