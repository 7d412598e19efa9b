#include "inspect/run_list.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "inspect/run_directory.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kUnnamed = "none";  // torchrun's word

/// An id holds the second in which a run began; the rest of it is random.
struct DatedRun {
  RunEntry run;
  std::filesystem::file_time_type began;
};

bool began_before(const DatedRun& one, const DatedRun& other) {
  constexpr std::size_t kSecondBytes = std::string_view("20261122-151500").size();
  const std::string_view second = std::string_view(one.run.id).substr(0, kSecondBytes);
  const std::string_view others = std::string_view(other.run.id).substr(0, kSecondBytes);
  if (second != others) return second < others;
  return one.began != other.began ? one.began < other.began : one.run.id < other.run.id;
}

}  // namespace

std::vector<RunEntry> list_runs(const std::filesystem::path& state_folder) {
  std::vector<DatedRun> dated;
  std::error_code error;
  std::filesystem::directory_iterator entry(state_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& folder = entry->path();
    if (!is_run(folder)) continue;
    dated.push_back({run_entry(folder), time_of_run(folder)});
  }
  std::sort(dated.begin(), dated.end(), began_before);
  std::vector<RunEntry> runs;
  for (DatedRun& run : dated) runs.push_back(std::move(run.run));
  return runs;
}

RunEntry run_entry(const std::filesystem::path& folder) {
  RunEntry run{folder.filename().string(), folder, !is_stale(folder), run_name_of(folder)};
  if (run.name == run.id || run.name == kUnnamed) run.name.clear();
  return run;
}

std::vector<RunEntry> runs_named(const std::vector<RunEntry>& runs, std::string_view name) {
  std::vector<RunEntry> called;
  std::vector<RunEntry> found;
  for (const RunEntry& run : runs) {
    if (run.id == name) return {run};
    if (run.name == name) called.push_back(run);
    const bool in_id = run.id.starts_with(name) || run.id.ends_with(name);
    if (in_id || run.name.starts_with(name)) found.push_back(run);
  }
  return called.empty() ? found : called;
}

}  // namespace lrun::launcher
