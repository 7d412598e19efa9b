// worker_fails FILE MILLISECONDS exit|segv|kill: in the first attempt rank 0 notes 'fail' after that time and fails in
// that way; the others wait for SIGTERM, which they note as 'term'. In a later attempt each notes 'start' and ends.
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "stamp.h"

namespace {

int number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? 0 : std::atoi(value);
}

int fail(const char* file, int milliseconds, std::string_view how) {
  ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
  append_stamp(file, "fail");
  if (how == "segv") std::raise(SIGSEGV);
  if (how == "kill") std::raise(SIGKILL);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  if (number_in("TORCHELASTIC_RESTART_COUNT") > 0) return append_stamp(argv[1], "start") ? 0 : 1;
  if (number_in("RANK") == 0) return fail(argv[1], std::atoi(argv[2]), argv[3]);
  int signal = 0;
  ::sigwait(&stop, &signal);
  append_stamp(argv[1], "term");
  return 128 + signal;
}
