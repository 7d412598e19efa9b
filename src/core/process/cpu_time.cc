#include "process/cpu_time.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/process_stat.h"
#include "base/small_file.h"
#include "base/split.h"
#include "base/whole_number.h"
#include "process/exit_codes.h"

namespace lrun::inline core {
namespace {

bool is_used_up(std::uint64_t limit_seconds, double used_seconds) {
  // The kernel counts ticks for its limits and exact times for what it shows: they differ by some seconds in a hundred,
  // and by a fifth where only a few ticks were counted.
  const double limit = static_cast<double>(limit_seconds);
  return used_seconds >= limit - std::min(0.2 * limit, 1 + 0.02 * limit);
}

}  // namespace

std::uint64_t cpu_ticks_of_sessions(const std::vector<pid_t>& leaders) {
  std::uint64_t ticks = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const auto stat = stat_of_process(std::atoi(entry->d_name));
    if (stat && std::find(leaders.begin(), leaders.end(), stat->session) != leaders.end()) ticks += stat->ticks;
  }
  return ticks;
}

CpuLimits parse_cpu_limits(std::string_view text) {
  constexpr std::string_view kLine = "Max cpu time";
  const std::size_t at = text.find(kLine);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + kLine.size());
  rest = cut(rest, '\n');
  const auto next = [&rest] {
    rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    return whole_number<std::uint64_t>(cut(rest, ' ')).value_or(0);  // 'unlimited'
  };
  const std::uint64_t soft = next();
  return {soft, next()};
}

std::uint64_t cpu_limit_used_up(pid_t pid, const ExitStatus& ending) {
  const int signal = ending.shell_code() - kExitSignalBase;
  if (signal != SIGKILL && signal != SIGXCPU) return 0;
  constexpr std::size_t kMostBytes = 4096;
  const std::string folder = "/proc/" + std::to_string(pid);
  const CpuLimits limits = parse_cpu_limits(read_small_file(folder + "/limits", kMostBytes).value_or(""));
  // When the kernel sends SIGXCPU it raises the soft limit by a second, for the next one.
  const std::uint64_t limit = signal == SIGKILL ? limits.hard : limits.soft - std::min<std::uint64_t>(1, limits.soft);
  const auto stat = stat_of_process(pid);
  const long ticks_a_second = ::sysconf(_SC_CLK_TCK);
  if (limit == 0 || !stat || ticks_a_second <= 0) return 0;
  const std::uint64_t used = ending.kind == ExitStatus::Kind::kSignaled ? stat->ticks : stat->children_ticks;
  const double used_seconds = static_cast<double>(used) / static_cast<double>(ticks_a_second);
  return is_used_up(limit, used_seconds) ? limit : 0;
}

}  // namespace lrun::inline core
