// In: the pid of a process. Out: what /proc shows of it. The sampler of stacks, and the watch for ranks that wait in
// vain call it.
#include "inspect/process_look.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/fd.h"
#include "base/process_stat.h"
#include "base/small_file.h"
#include "inspect/system_call.h"
#include "process/tracer.h"

namespace lrun::launcher {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1024} * 1024;

std::string read_proc(pid_t pid, const char* name) {
  const Fd file(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  while (file && text.size() < kMostFileBytes) {
    char buffer[16384];
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

/// The entries of a folder that are the number of a process or a thread.
std::vector<pid_t> numbers_in(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    pid_t number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc()) numbers.push_back(number);
  }
  return numbers;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t pid : numbers_in("/proc")) {
    const auto stat = stat_of_process(pid);
    if (stat && stat->parent == parent && stat->state != 'Z') children.push_back(pid);
  }
  return children;
}

/// As activity_of().
std::int64_t activity_from(const std::string& schedstat) {
  constexpr std::int64_t kNanosecondsInMs = 1'000'000;
  std::int64_t used_ns = 0;
  std::int64_t waited_ns = 0;
  std::int64_t times = 0;
  std::istringstream(schedstat) >> used_ns >> waited_ns >> times;
  return times + used_ns / kNanosecondsInMs;
}

bool waits_for_children(pid_t pid) {
  const auto call = parse_system_call(read_proc(pid, "syscall"));
  return call && (call->number == SYS_wait4 || call->number == SYS_waitid || call->number == SYS_rt_sigsuspend);
}

std::string descriptor_target(pid_t pid, std::uint64_t descriptor) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid, descriptor), error);
  return error ? fmt::format("descriptor {}", descriptor) : target.string();
}

}  // namespace

pid_t working_process(pid_t pid) {
  constexpr int kMostWrappers = 8;
  for (int i = 0; i < kMostWrappers && waits_for_children(pid); ++i) {
    const std::vector<pid_t> children = children_of(pid);
    if (children.size() != 1) break;
    pid = children.front();
  }
  return pid;
}

std::int64_t activity_of(pid_t pid) { return activity_from(read_proc(pid, "schedstat")); }

std::int64_t activity_of_threads(pid_t pid) {
  std::int64_t sum = 0;
  for (const pid_t thread : numbers_in(fmt::format("/proc/{}/task", pid))) {
    sum += activity_from(read_proc(pid, fmt::format("task/{}/schedstat", thread).c_str()));
  }
  return sum;
}

StackSample look_at_process(pid_t pid) {
  StackSample sample;
  sample.pid = pid;
  const auto stat = stat_of_process(pid);
  if (!stat) return sample;
  sample.command = stat->command;
  sample.state = stat->state;
  sample.threads = stat->threads;
  sample.activity = activity_of(pid);
  if (const auto call = parse_system_call(read_proc(pid, "syscall"))) {
    sample.system_call = system_call_name(call->number);
    if (waits_for_descriptor(call->number)) sample.waits_for = descriptor_target(pid, call->first_argument);
  }
  sample.wait_channel = read_proc(pid, "wchan");
  if (sample.wait_channel == "0") sample.wait_channel.clear();
  return sample;
}

std::string refusal_of_look(pid_t pid, int error_number) {
  if (error_number == ENOSYS) return "this kernel has no process_vm_readv";
  const bool own = has_own_ids(pid);
  if (!own && ::geteuid() != 0) return "the process is of another user or group; run as root, or as that user";
  struct stat file {};
  const bool hidden = ::stat(fmt::format("/proc/{}/maps", pid).c_str(), &file) == 0 && file.st_uid != ::geteuid();
  if (own && hidden) return "the process is not dumpable, as a set-user-ID program or by PR_SET_DUMPABLE; run as root";
  if (std::string yama = yama_refusal(); !yama.empty()) return yama;
  return "the kernel does not permit it; in a container, give it the capability SYS_PTRACE";
}

std::string yama_refusal() {
  const std::string scope = read_small_file("/proc/sys/kernel/yama/ptrace_scope", 16).value_or("0");
  if (scope.starts_with('0')) return {};
  return fmt::format("kernel.yama.ptrace_scope is {}; run as root, or set it to 0", scope.substr(0, 1));
}

}  // namespace lrun::launcher
