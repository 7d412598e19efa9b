#include "runtime/launch/process_start.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "process/spawn.h"

namespace lrun::detail {
namespace {

/// Takes the variable and the descriptor away, so that nothing this process starts takes them for its own.
void claim_call(ProcessStart& start) {
  const char* const text = std::getenv(kLaunchCallVariable);
  if (text == nullptr) return;
  const auto call = LaunchCall::parse(text);
  ::unsetenv(kLaunchCallVariable);
  if (!call || call->parent != ::getppid()) return;
  start.board = Fd(::fcntl(kExtraDescriptor, F_DUPFD_CLOEXEC, kExtraDescriptor));
  if (!start.board) return;
  ::close(kExtraDescriptor);
  start.call = call;
}

ProcessStart note_start() {
  ProcessStart start;
  claim_call(start);
  start.threads = threads_of_this_process();
  return start;
}

// Before main(), while the program has neither threads of its own nor children.
[[gnu::constructor]] void note() { process_start(); }

}  // namespace

std::string LaunchCall::text() const {
  return std::to_string(call) + ':' + std::to_string(local_rank) + ':' + std::to_string(parent);
}

std::optional<LaunchCall> LaunchCall::parse(std::string_view text) {
  LaunchCall call;
  const char* position = text.data();
  const char* const end = position + text.size();
  for (int* const number : {&call.call, &call.local_rank, &call.parent}) {
    const auto [next, error] = std::from_chars(position, end, *number);
    const bool is_last = number == &call.parent;
    if (error != std::errc() || (is_last ? next != end : next == end || *next != ':')) return std::nullopt;
    position = is_last ? next : next + 1;
  }
  const bool fits = call.call > 0 && call.local_rank >= 0 && call.parent > 0;
  return fits ? std::optional(call) : std::nullopt;
}

ProcessStart& process_start() {
  static ProcessStart& start = *new ProcessStart(note_start());  // never destroyed: exit handlers may launch, too
  return start;
}

std::vector<pid_t> threads_of_this_process() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    pid_t thread = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), thread);
    if (error == std::errc()) threads.push_back(thread);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

}  // namespace lrun::detail
