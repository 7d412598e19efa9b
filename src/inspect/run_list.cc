#include "inspect/run_list.h"

#include <algorithm>
#include <system_error>

#include "inspect/run_directory.h"

namespace lrun {

std::vector<RunEntry> list_runs(const std::filesystem::path& state_folder) {
  std::vector<RunEntry> runs;
  std::error_code error;
  std::filesystem::directory_iterator entry(state_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& folder = entry->path();
    if (is_run(folder)) runs.push_back({folder.filename().string(), folder, !is_stale(folder)});
  }
  std::sort(runs.begin(), runs.end(), [](const RunEntry& a, const RunEntry& b) { return a.id < b.id; });
  return runs;
}

std::vector<RunEntry> runs_named(const std::vector<RunEntry>& runs, std::string_view name) {
  std::vector<RunEntry> found;
  for (const RunEntry& run : runs) {
    if (run.id == name) return {run};
    if (run.id.starts_with(name) || run.id.ends_with(name)) found.push_back(run);
  }
  return found;
}

}  // namespace lrun
