#include "process/continue_signal.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace lrun::inline core {

void continue_at_end_of(int pipe_end) {
  ::fcntl(pipe_end, F_SETOWN, ::getpid());
  ::fcntl(pipe_end, F_SETSIG, SIGCONT);
  ::fcntl(pipe_end, F_SETFL, ::fcntl(pipe_end, F_GETFL) | O_ASYNC);
}

}  // namespace lrun::inline core
