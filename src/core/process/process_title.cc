#include "process/process_title.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace lrun::inline core {
namespace {

std::span<char> command_line;    // the kernel's copy of the arguments, one behind the other
std::vector<std::string> typed;  // the arguments

}  // namespace

void remember_command_line(int count, char** arguments) {
  if (count < 1) return;
  char* end = arguments[0];
  for (int i = 0; i < count && arguments[i] == end; ++i) end += std::strlen(end) + 1;
  command_line = {arguments[0], end};
  typed.assign(arguments, arguments + count);
}

const std::vector<std::string>& remembered_command_line() { return typed; }

void set_process_title(std::string_view title) {
  if (command_line.empty()) return;
  std::fill(command_line.begin(), command_line.end(), '\0');
  // The last byte stays 0: the kernel would go on reading in the environment.
  std::copy_n(title.begin(), std::min(title.size(), command_line.size() - 1), command_line.begin());
}

}  // namespace lrun::inline core
