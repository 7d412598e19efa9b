// In: the state folder. Out: the runs in it, those that wait to begin among them, and which of them a name means. The
// verbs call it.
#include "inspect/run_list.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "inspect/run_directory.h"
#include "plan/run_id.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kUnnamed = "none";  // torchrun's word

/// A launcher that has left a result is not asked for its lock, which may be on a file server.
bool has_ended(const std::filesystem::path& part) {
  std::error_code error;
  return std::filesystem::exists(part / "result.json", error) || is_stale(part);
}

/// An id holds the second in which a run began; the rest of it is random.
struct DatedRun {
  RunEntry run;
  std::filesystem::file_time_type began;
};

std::string_view second_of(const RunEntry& run) {
  constexpr std::size_t kSecondBytes = std::string_view("20261122-151500").size();
  return std::string_view(run.id).substr(0, kSecondBytes);
}

bool began_before(const DatedRun& one, const DatedRun& other) {
  if (second_of(one.run) != second_of(other.run)) return second_of(one.run) < second_of(other.run);
  return one.began != other.began ? one.began < other.began : one.run.id < other.run.id;
}

/// The id alone names a run that has no name of its own.
void take_names(RunEntry& run) {
  run.jobs = names_of(run.parts.front());
  run.name = std::move(run.jobs.front());
  run.jobs.erase(run.jobs.begin());
  if (run.name == run.id || run.name == kUnnamed) run.name.clear();
}

}  // namespace

std::vector<RunEntry> list_runs(const std::filesystem::path& state_folder) {
  std::vector<DatedRun> dated;
  std::error_code error;
  std::filesystem::directory_iterator entry(state_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::optional<RunEntry> run = run_in(entry->path());
    if (!run) continue;
    const std::filesystem::file_time_type began = time_of_run(run->parts.front());
    dated.push_back({*std::move(run), began});
  }
  std::sort(dated.begin(), dated.end(), began_before);
  std::vector<RunEntry> runs;
  for (DatedRun& run : dated) runs.push_back(std::move(run.run));
  return runs;
}

std::vector<RunEntry> list_waiting(const std::filesystem::path& state_folder) {
  std::vector<RunEntry> all;
  std::error_code error;
  std::filesystem::directory_iterator entry(state_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::vector<std::filesystem::path> parts = waiting_parts(entry->path());
    std::erase_if(parts, is_stale);
    if (parts.empty()) continue;
    RunEntry run{entry->path().filename(), entry->path(), std::move(parts), true, {}, true};
    take_names(run);
    all.push_back(std::move(run));
  }
  std::sort(all.begin(), all.end(), [](const RunEntry& one, const RunEntry& other) { return one.id < other.id; });
  return all;
}

std::vector<RunEntry> list_all(const std::filesystem::path& state_folder) {
  std::vector<RunEntry> runs = list_runs(state_folder);
  for (RunEntry& waiting : list_waiting(state_folder)) {
    const auto same = std::find_if(runs.begin(), runs.end(), [&](const RunEntry& run) { return run.id == waiting.id; });
    if (same != runs.end()) {
      same->parts.insert(same->parts.end(), waiting.parts.begin(), waiting.parts.end());
      same->alive = true;
      continue;
    }
    const auto began_before_it = [](const RunEntry& one, const RunEntry& other) {
      return second_of(one) < second_of(other);
    };
    runs.insert(std::upper_bound(runs.begin(), runs.end(), waiting, began_before_it), std::move(waiting));
  }
  return runs;
}

std::optional<RunEntry> run_in(const std::filesystem::path& folder) {
  RunEntry run{.id = folder.filename().string(), .folder = folder, .parts = parts_of_run(folder)};
  if (run.parts.empty()) return std::nullopt;
  const std::string of_job = folder.parent_path().filename().string();
  if (!is_run_id(run.id) && is_run_id(of_job)) run.id = of_job;
  run.alive = !std::all_of(run.parts.begin(), run.parts.end(), has_ended);
  take_names(run);
  return run;
}

bool is_of_job(const RunEntry& run, std::string_view name) {
  constexpr std::string_view kPrefix = "slurm-";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return !name.empty() && std::any_of(run.jobs.begin(), run.jobs.end(), [name](const std::string& job) {
    return job == name || (job.starts_with(name) && (job[name.size()] == '.' || job[name.size()] == '_'));
  });
}

bool are_of_one_job(const RunEntry& one, const RunEntry& other) {
  if (!one.name.empty() || !other.name.empty()) return one.name == other.name;
  return one.id == other.id || (!one.jobs.empty() && one.job() == other.job());
}

std::vector<RunEntry> runs_named(const std::vector<RunEntry>& runs, std::string_view name) {
  std::vector<RunEntry> called;
  std::vector<RunEntry> found;
  constexpr std::size_t kFewestLetters = 3;  // a number is more likely a rank than the end of an id
  const bool may_be_part = name.size() >= kFewestLetters;
  for (const RunEntry& run : runs) {
    if (run.id == name) return {run};
    if (run.name == name || is_of_job(run, name)) called.push_back(run);
    const bool in_id = run.id.starts_with(name) || run.id.ends_with(name);
    if (may_be_part && (in_id || run.name.starts_with(name))) found.push_back(run);
  }
  return called.empty() ? found : called;
}

}  // namespace lrun::launcher
