// Traces a process and never waits for it, as a debugger at its prompt: idle_tracer PID [stopped|exiting]. Prints a
// line when it does.
#include <sys/ptrace.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string_view how = argc > 2 ? argv[2] : "";
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as ptrace(2) wants its options
  void* const options = how == "exiting" ? reinterpret_cast<void*>(PTRACE_O_TRACEEXIT) : nullptr;
  const auto request = how == "stopped" ? PTRACE_ATTACH : PTRACE_SEIZE;
  if (::ptrace(request, static_cast<pid_t>(std::atol(argv[1])), nullptr, options) != 0) {
    std::cout << "cannot trace: " << std::strerror(errno) << std::endl;
    return 1;
  }
  std::cout << "tracing" << std::endl;
  while (true) ::pause();
}
