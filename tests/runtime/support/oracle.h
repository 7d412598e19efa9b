#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace lrun::test {

/// The output of a program, for comparisons with Python's torch.
struct Shell {
  int status = 0;
  std::string output;
};

inline Shell run_shell(const std::string& command) {
  Shell result;
  std::FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::array<char, 4096> bytes{};
  while (const auto count = std::fread(bytes.data(), 1, bytes.size(), pipe)) result.output.append(bytes.data(), count);
  result.status = ::pclose(pipe);
  return result;
}

/// A Python that may have torch.
struct Python {
  std::string command;        ///< With a blank at its end.
  bool is_asked_for = false;  ///< LRUN_TEST_PYTHON names it, so that it has to have torch.
  Shell import;               ///< Of torch.
};

inline Python find_python() {
  const char* const asked = std::getenv("LRUN_TEST_PYTHON");
  Python python;
  python.command = "'" + std::string(asked != nullptr ? asked : "python3") + "' ";
  python.is_asked_for = asked != nullptr;
  python.import = run_shell(python.command + "-c 'import torch.nn.parallel' 2>&1");
  return python;
}

}  // namespace lrun::test
