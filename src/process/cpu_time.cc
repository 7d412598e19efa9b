#include "process/cpu_time.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/process_stat.h"

namespace lrun {

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

}  // namespace lrun
