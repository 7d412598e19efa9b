// In: a function, and descriptors to keep. Out: a child that runs the function in a copy of this process. Called by
// WorkerGroup for lrun::launch, by ForkedHelper, and by the agent of a host.
#include "process/fork_child.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "base/own_signals.h"
#include "process/signal_set.h"

namespace lrun::inline core {
namespace {

constexpr int kNoStart = 127;

void reset_stop_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (!is_ignored(number)) ::signal(number, SIG_DFL);
  }
  ::signal(guard_died_signal(), SIG_DFL);  // its handler is for the parent
}

/// The sources may stand in each other's places: they are copied away first.
bool set_standard_streams(const ForkRequest& request) {
  int sources[] = {request.standard_input, request.standard_output, request.standard_error};
  for (int& source : sources) source = ::dup(source);
  bool placed = true;
  for (int target = 0; target < 3; ++target) placed = ::dup2(sources[target], target) == target && placed;
  return placed;
}

void close_all_but(const std::vector<int>& kept) {
  for (const int fd : open_descriptors()) {
    if (fd > STDERR_FILENO && !std::binary_search(kept.begin(), kept.end(), fd)) ::close(fd);
  }
}

[[noreturn]] void run_child(const ForkRequest& request, pid_t parent, Fd ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  if (::getppid() != parent) ::_exit(kNoStart);  // the parent died before the death signal was armed
  ready.reset();
  reset_stop_signals();
  if (!set_standard_streams(request)) ::_exit(kNoStart);
  close_all_but(request.descriptors);
  const sigset_t none = signal_set({});
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::_exit(request.function());
}

}  // namespace

std::vector<int> open_descriptors() {
  std::vector<int> descriptors;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    int fd = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
    if (error == std::errc() && fd != ::dirfd(folder.get())) descriptors.push_back(fd);
  }
  std::sort(descriptors.begin(), descriptors.end());
  return descriptors;
}

SpawnResult fork_child(const ForkRequest& request) {
  // No signal may run a handler of the parent's in the child before it has a group and a death signal of its own.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  SpawnResult result;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    result.error_number = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return result;
  }
  const Fd ready(ends[0]);
  Fd not_ready(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run_child(request, parent, std::move(not_ready));
  const int fork_error = errno;
  not_ready.reset();
  char none = 0;
  if (pid > 0) (void)!::read(ready.get(), &none, 1);  // ends when the child leads its group: it can be killed by it now
  if (pid < 0) {
    result.error_number = fork_error;
  } else {
    result.child.emplace(PidFd::of_child(pid));
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return result;
}

}  // namespace lrun::inline core
