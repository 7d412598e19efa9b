// In: a function. Out: a child of the launcher that runs it beside the run. CopierProcess and NoticeMonitor own one.
#include "process/forked_helper.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "process/fork_child.h"
#include "process/process_title.h"

namespace lrun::inline core {
namespace {

constexpr Duration kEndLimit(1000);

int run_helper(const ForkedHelper::Request& request) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, request.name.c_str());
  set_process_title(request.name + " of " + request.of);
  try {
    return request.function();
  } catch (const std::exception&) {  // its parent sees the end
    return 1;
  }
}

PidFd start_helper(const ForkedHelper::Request& request) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<int> kept = request.descriptors;
  std::sort(kept.begin(), kept.end());
  SpawnResult result = fork_child({.function = [&request] { return run_helper(request); },
                                   .standard_input = null.get(),
                                   .standard_output = null.get(),
                                   .standard_error = null.get(),
                                   .descriptors = std::move(kept)});
  if (!result.ok()) throw std::system_error(result.error_number, std::generic_category(), "no process");
  PidFd child = *std::move(result.child);
  if (child.poll_fd() >= 0) return child;
  child.signal(SIGKILL);  // its number may be another's by the time that it is signalled
  throw std::system_error(ENOSYS, std::generic_category(), "pidfd_open");
}

}  // namespace

ForkedHelper::ForkedHelper(const Request& request) : child_(start_helper(request)) {}

ForkedHelper::~ForkedHelper() {
  child_.signal(SIGKILL);
  (void)child_.wait_until_ended(kEndLimit);
  try {
    (void)child_.try_wait();
  } catch (const std::system_error&) {  // it was reaped with the orphans
  }
}

}  // namespace lrun::inline core
