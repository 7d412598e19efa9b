// Traces a process and never waits for it, as a debugger at its prompt: idle_tracer PID [stopped]. Says so when it
// does.
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
  const bool stopped = argc > 2 && std::string_view(argv[2]) == "stopped";
  if (::ptrace(stopped ? PTRACE_ATTACH : PTRACE_SEIZE, static_cast<pid_t>(std::atol(argv[1])), nullptr, nullptr) != 0) {
    std::cout << "cannot trace: " << std::strerror(errno) << std::endl;
    return 1;
  }
  std::cout << "tracing" << std::endl;
  while (true) ::pause();
}
