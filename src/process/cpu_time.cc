#include "process/cpu_time.h"

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace lrun {
namespace {

struct Usage {
  pid_t session = 0;
  std::uint64_t ticks = 0;
};

/// Fields of /proc/PID/stat after the command, which may hold any character: 3 is the state, 6 the session, 14 and 15
/// the ticks in user and kernel mode.
Usage usage_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream fields(text.substr(end + 1));
  std::string skipped;
  Usage usage;
  fields >> skipped >> skipped >> skipped >> usage.session;
  for (int field = 7; field < 14; ++field) fields >> skipped;
  std::uint64_t kernel = 0;
  fields >> usage.ticks >> kernel;
  usage.ticks += kernel;
  return usage;
}

}  // namespace

std::uint64_t cpu_ticks_of_sessions(const std::vector<pid_t>& leaders) {
  std::uint64_t ticks = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const Usage usage = usage_of(entry->d_name);
    if (std::find(leaders.begin(), leaders.end(), usage.session) != leaders.end()) ticks += usage.ticks;
  }
  return ticks;
}

}  // namespace lrun
