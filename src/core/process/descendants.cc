// In: this process. Out: the processes below it, from /proc, and their end. Called by guard and launcher when a run is
// over, and by WorkerGroup. Works, more slowly, without /proc and without pidfds.
#include "process/descendants.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process_stat.h"
#include "base/small_file.h"
#include "process/signal_set.h"
#include "process/tracer.h"

namespace lrun::inline core {
namespace {

std::vector<pid_t> parse_pids(std::string_view text) {
  std::vector<pid_t> pids;
  const char* position = text.data();
  const char* const end = position + text.size();
  while (position < end) {
    pid_t pid = 0;
    const auto [next, error] = std::from_chars(position, end, pid);
    if (error == std::errc()) pids.push_back(pid);
    position = next + 1;
  }
  return pids;
}

bool proc_shows_us() {
  char self[32] = {};
  const ssize_t length = ::readlink("/proc/self", self, sizeof self - 1);
  return length > 0 && std::to_string(::getpid()) == self;
}

bool is_our_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool have_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

/// A list that is read while a child ends may lack another one; the second list then has it.
bool has_only(const std::vector<pid_t>& spared) {
  const auto lists_only_those = [&] {
    const std::vector<pid_t> children = direct_children();
    return !children.empty() &&
           std::all_of(children.begin(), children.end(), [&](pid_t child) { return contains(spared, child); });
  };
  return !spared.empty() && lists_only_those() && lists_only_those();
}

pid_t shown_parent_of(pid_t pid) {
  const auto stat = stat_of_process(pid);
  return stat ? stat->parent : 0;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    for (const pid_t pid : parse_pids(entry->d_name)) all.push_back(pid);
  }
  return all;
}

/// Every process that /proc shows, with its parent.
std::map<pid_t, pid_t> all_parents() {
  std::map<pid_t, pid_t> parents;
  for (const pid_t pid : all_processes()) parents[pid] = shown_parent_of(pid);
  return parents;
}

/// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> children_by_scan() {
  std::vector<pid_t> pids;
  for (const auto& [pid, parent] : all_parents()) {
    if (parent == ::getpid()) pids.push_back(pid);
  }
  return pids;
}

bool is_below(pid_t pid, pid_t ancestor, const std::map<pid_t, pid_t>& parents) {
  for (std::size_t steps = 0; steps <= parents.size(); ++steps) {  // the scan is no snapshot: it may show a circle
    const auto entry = parents.find(pid);
    if (entry == parents.end()) return false;
    if (entry->second == ancestor) return true;
    pid = entry->second;
  }
  return false;
}

/// A pidfd names one process for ever. So the parent is checked after it was opened, and the process that is killed is
/// the one that was checked. \return false where there are no pidfds: the process is left alone.
bool kill_child_of(pid_t parent, pid_t pid) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return errno == ESRCH;
  if (shown_parent_of(pid) == parent) ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  return true;
}

void reap_zombies() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

/// Where /proc is missing or shows another pid namespace: the next child behind the pid `last`, found by trying every
/// possible pid; kUnlisted when there is none. Reaps meanwhile: the last child may end long before all are tried.
pid_t child_by_trial(pid_t last, SteadyTime deadline) {
  constexpr pid_t kMostPid = 1 << 22;  // PID_MAX_LIMIT of the kernel
  constexpr pid_t kBetweenLooks = 1 << 12;
  for (pid_t tried = 1; tried <= kMostPid; ++tried) {
    const pid_t pid = (last + tried - 1) % kMostPid + 1;
    if (is_our_child(pid)) return pid;
    if (tried % kBetweenLooks != 0) continue;
    reap_zombies();
    if (!have_children() || std::chrono::steady_clock::now() >= deadline) break;
  }
  return kUnlisted;
}

pid_t tracer_of_dead(pid_t pid) {
  const std::optional<Tracer> tracer = pid > 0 && is_dead(pid) ? tracer_of(pid) : std::nullopt;
  return tracer ? tracer->pid : 0;
}

/// Whether all are dead and each is held by a tracer that is not ended here, because it is not below this process.
bool are_held_by_outsiders(const std::vector<pid_t>& pids) {
  std::vector<pid_t> tracers;
  for (const pid_t pid : pids) {
    tracers.push_back(tracer_of_dead(pid));
    if (tracers.back() == 0) return false;
  }
  const std::map<pid_t, pid_t> parents = all_parents();
  for (std::size_t i = 0; i < pids.size(); ++i) {
    // A tracer of ours that has ended meanwhile is not listed, and holds nothing any more.
    if (is_below(tracers[i], ::getpid(), parents) || tracer_of_dead(pids[i]) != tracers[i]) return false;
  }
  return true;
}

/// Not even SIGKILL moves a process that a tracer stopped on its way out (PTRACE_O_TRACEEXIT).
bool is_in_tracing_stop(pid_t pid) {
  const auto stat = stat_of_process(pid);
  return stat && stat->state == 't';
}

/// The reason for a process that was killed. If it is not traced, and we may signal it, the kernel holds it.
std::string why_not_ended(pid_t pid) {
  const bool died = is_dead(pid);
  const std::optional<Tracer> tracer = died || is_in_tracing_stop(pid) ? tracer_of(pid) : std::nullopt;
  if (tracer) return (died ? "dead, and held by " : "held by ") + tracer->text();
  const bool is_another_users = ::kill(pid, 0) != 0 && errno == EPERM;
  return is_another_users ? "another user's" : "uninterruptible in the kernel";
}

}  // namespace

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> all_descendants() {
  std::vector<pid_t> below;
  if (!proc_shows_us()) return below;
  const pid_t self = ::getpid();
  const std::map<pid_t, pid_t> parents = all_parents();
  for (const auto& [pid, parent] : parents) {
    if (is_below(pid, self, parents)) below.push_back(pid);
  }
  return below;
}

pid_t parent_of(pid_t pid) { return proc_shows_us() ? shown_parent_of(pid) : 0; }

std::vector<pid_t> direct_children() {
  if (!proc_shows_us()) return {};
  constexpr std::size_t kMostBytes = std::size_t{1} << 26U;  // more than all pids that there can be
  const std::optional<std::string> list = read_small_file("/proc/thread-self/children", kMostBytes);
  std::vector<pid_t> children = list ? parse_pids(*list) : children_by_scan();
  std::erase_if(children, [](pid_t pid) { return !is_our_child(pid); });
  return children;
}

bool kill_below_children() {
  if (!proc_shows_us()) return false;
  const pid_t self = ::getpid();
  const std::map<pid_t, pid_t> parents = all_parents();
  bool may_kill = true;
  for (const auto& [pid, parent] : parents) {
    if (parent != self && is_below(parent, self, parents)) may_kill = kill_child_of(parent, pid) && may_kill;
  }
  return may_kill;
}

void reap_adopted(const std::function<bool(pid_t)>& is_worker) {
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 && !is_worker(info.si_pid)) {
    ::waitpid(info.si_pid, nullptr, WNOHANG);
    info = {};
  }
}

std::vector<pid_t> end_all_descendants(Duration limit, const RunCgroup& cgroup, const std::vector<pid_t>& spared) {
  constexpr Duration kUsual(1000);  // processes that are left after it are held by the kernel
  constexpr Duration kRepeat(250);  // of a look at all processes
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  SteadyTime next_walk = std::chrono::steady_clock::now() + kUsual;
  const sigset_t child_signal = signal_set({SIGCHLD});
  reap_zombies();
  if (have_children()) cgroup.kill();
  pid_t tried = ::getpid();  // most children are younger than this process
  while (true) {
    reap_zombies();
    if (!have_children() || has_only(spared)) return {};
    std::vector<pid_t> children = direct_children();
    std::erase_if(children, [&](pid_t child) { return contains(spared, child); });
    if (children.empty()) {
      tried = proc_shows_us() ? kUnlisted : child_by_trial(tried, deadline);
      children = {tried};
    }
    const auto left = std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now());
    if (left <= Duration::zero() || are_held_by_outsiders(children)) return children;
    for (const pid_t child : children) {
      if (child > 0) ::kill(child, SIGKILL);
    }
    if (std::chrono::steady_clock::now() >= next_walk) {
      kill_below_children();
      next_walk = std::chrono::steady_clock::now() + kRepeat;
    }
    // A death may fall between the look above and this wait: then no signal comes, so no wait is long.
    constexpr Duration kLook(20);
    const timespec pause{0, std::min(left, kLook).count() * 1'000'000};
    ::sigtimedwait(&child_signal, nullptr, &pause);
  }
}

bool lives_in_group(pid_t group) {
  const std::vector<pid_t> all = all_processes();
  return std::any_of(all.begin(), all.end(), [group](pid_t pid) {
    const auto stat = stat_of_process(pid);
    return stat && stat->group == group && stat->state != 'Z';
  });
}

bool are_dead(const std::vector<pid_t>& survivors) {
  return std::all_of(survivors.begin(), survivors.end(), [](pid_t pid) { return pid != kUnlisted && is_dead(pid); });
}

std::string survivors_text(const std::vector<pid_t>& survivors) {
  const std::size_t count = survivors.size();
  if (count == 1 && survivors.front() == kUnlisted) {
    return "processes that the workers left cannot be listed: there is no /proc";
  }
  const pid_t first = survivors.front();
  const std::string reason = why_not_ended(first);
  return std::to_string(count) + (count == 1 ? " process" : " processes") + " cannot be ended (" + reason + ")" +
         (count == 1 ? ": pid " : ", first pid ") + std::to_string(first);
}

}  // namespace lrun::inline core
