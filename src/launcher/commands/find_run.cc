// In: the name of a run, as the user typed it. Out: the run, or a UserError that names those there are. The verbs call
// it.
#include "commands/find_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/signal_names.h"
#include "base/small_file.h"
#include "base/user_error.h"
#include "base/whole_number.h"
#include "inspect/control_client.h"
#include "inspect/job_answers.h"
#include "inspect/run_directory.h"
#include "plan/run_id.h"
#include "report/status_text.h"

namespace lrun::launcher {
namespace {

constexpr std::string_view kNothingRan = "nothing has run with this folder yet; LRUN_STATE chooses it";
constexpr Duration kAnswerLimit(2000);
constexpr std::size_t kMostNamed = 6;
constexpr std::size_t kMostResultBytes = std::size_t{64} * 1024 * 1024;
constexpr std::size_t kMostEventBytes = std::size_t{256} * 1024 * 1024;

/// 'a, b or c': the newest of them, with their Slurm jobs.
std::string newest_of(const std::vector<RunEntry>& runs) {
  std::vector<std::string> names;
  for (auto run = runs.rbegin(); run != runs.rend() && names.size() < kMostNamed; ++run) {
    names.push_back("'" + run->id + "'" + (run->jobs.empty() ? std::string() : " (job " + run->job() + ")"));
  }
  return join_words(names, " or ");
}

RunEntry run_in_folder(const std::string& name) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(name, error).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  std::optional<RunEntry> run = run_in(folder);
  if (!run)
    throw UserError("'" + name + "' is no folder of a run",
                    "'lrun runs' lists them; without a name the last run is meant");
  return *std::move(run);
}

/// Of several that are meant.
[[noreturn]] void refuse_several(const std::string& name, const std::vector<RunEntry>& found) {
  throw UserError("'" + name + "' matches several runs", "name one: " + newest_of(found));
}

/// For a name that no run has, but that is something else. Empty: it is not.
std::string hint_about_name(const std::string& name) {
  if (name == "last" || name == "latest" || name == "newest") {
    return "leave '" + name + "' out: without a name the last run is meant";
  }
  if (name == "all") return "leave 'all' out: without ranks all of them are meant, and 'lrun runs' lists all runs";
  if (name == "rank" || name == "ranks") return "ranks are plain words: 'lrun logs 0 2'";
  if (name == "goodput") return "'lrun report --goodput' says what the time was spent on";
  if (name.ends_with(".log") || name.ends_with(".txt")) return "without a name the last run is meant: 'lrun logs'";
  if (name == "stdout" || name == "stderr") return "'lrun logs --stream " + name + "' shows that alone";
  if (name.ends_with(".html")) return "'lrun report --html " + name + "' writes it";
  if (name.ends_with(".py")) return "leave it out: without a name the last run is meant, and 'lrun runs' lists all";
  if (name.starts_with("attempt_")) return "'lrun logs --attempt " + name.substr(8) + "' shows that attempt";
  constexpr int kFromSignal = 128;  // exit codes of shells
  const auto code = natural_number(name);
  if (code && *code > kFromSignal && *code <= kFromSignal + SIGSYS) {
    const int signal = *code - kFromSignal;
    std::string meaning = std::string(signal_meaning(signal));
    if (signal == SIGKILL) meaning += ", often for lack of memory";
    return fmt::format("as an exit code it is {}{}; without a name the last run is meant", signal_name(signal),
                       meaning.empty() ? "" : " (" + meaning + ")");
  }
  const std::size_t dots = name.find("..");
  if (dots != std::string::npos && natural_number(name.substr(0, dots)) && natural_number(name.substr(dots + 2))) {
    return "ranks are written '" + name.substr(0, dots) + "-" + name.substr(dots + 2) + "'";
  }
  constexpr int kLeastPid = 300;  // the kernel keeps lower ones for its own, and they are more likely to be ranks
  const auto pid = natural_number(name);
  if (pid && *pid >= kLeastPid && ::getpgid(*pid) > 0) {
    return "it is the id of a process: 'lrun stack --pids " + name + "' shows where that is; 'lrun status' names runs";
  }
  return {};
}

/// Those that are meant, at least one.
std::vector<RunEntry> all_named(const std::string& name, const std::filesystem::path& state_folder) {
  if (name.find('/') != std::string::npos && !parts_of_run(name).empty()) return {run_in_folder(name)};
  const std::vector<RunEntry> runs = list_all(state_folder);
  std::vector<RunEntry> found = runs_named(runs, name);
  if (!found.empty()) return found;
  if (name.find('/') != std::string::npos) return {run_in_folder(name)};
  const std::string problem = "no run '" + name + "' in '" + state_folder.string() + "'";
  if (const std::string hint = hint_about_name(name); !hint.empty()) throw UserError(problem, hint);
  const std::string_view digits = std::string_view(name).substr(name.starts_with("rank") ? 4 : 0);
  const bool has_jobs = std::any_of(runs.begin(), runs.end(), [](const RunEntry& run) { return !run.jobs.empty(); });
  constexpr int kMostRank = 99'999;  // longer numbers are parts of dates and times
  if (const auto rank = natural_number(digits); rank && *rank <= kMostRank && !has_jobs) {
    throw UserError(problem, fmt::format("RUN is no rank: without a name all ranks of the last run are meant; "
                                         "'lrun logs {0}' shows what rank {0} wrote",
                                         *rank));
  }
  if (runs.empty()) throw UserError(problem, std::string(kNothingRan));
  const bool is_id = name.starts_with("20") && name.find('-') == 8;  // its date
  if (!is_id && !has_jobs) throw UserError(problem, "without a name the last run is meant, and 'lrun runs' lists all");
  const bool is_older = name < runs.front().id && is_id;
  throw UserError(problem,
                  (is_older ? "older runs were removed; the last ones are " : "the last ones are ") + newest_of(runs));
}

std::vector<RunEntry> alive_of(std::vector<RunEntry> runs) {
  std::erase_if(runs, [](const RunEntry& run) { return !run.alive; });
  return runs;
}

/// When the first of its launchers began. In a job of several it makes its folder only when all have met, but the run's
/// id before; a folder that was copied has another time.
std::int64_t launched_ms(const RunEntry& run) {
  std::filesystem::file_time_type first = time_of_run(run.parts.front());
  for (const std::filesystem::path& part : run.parts) first = std::min(first, time_of_run(part));
  const std::int64_t made_ms = nanoseconds(std::chrono::file_clock::to_sys(first)) / 1'000'000;
  const std::int64_t id_ms = time_of_run_id(run.id);
  constexpr std::int64_t kSecond = 1000;  // an id knows no more
  return id_ms != 0 && made_ms >= id_ms + 2 * kSecond ? id_ms : std::max<std::int64_t>(0, made_ms);
}

/// Of a head.
int count_running(const std::vector<HostStatus>& hosts) {
  return static_cast<int>(
      std::count_if(hosts.begin(), hosts.end(), [](const HostStatus& host) { return host.state == kHostRuns; }));
}

}  // namespace

RunEntry run_named(const std::string& name, const std::filesystem::path& state_folder) {
  if (!name.empty()) {
    const std::vector<RunEntry> found = all_named(name, state_folder);
    if (found.size() > 1) refuse_several(name, found);
    return found.front();
  }
  const std::vector<RunEntry> runs = list_all(state_folder);
  if (!runs.empty()) return runs.back();
  throw UserError("no run is kept in '" + state_folder.string() + "'", std::string(kNothingRan));
}

RunEntry run_of_job_named(const std::string& name, const std::filesystem::path& state_folder) {
  std::vector<RunEntry> found;
  if (name.empty()) {
    const RunEntry last = run_named(name, state_folder);
    found = list_all(state_folder);
    std::erase_if(found, [&](const RunEntry& run) { return !are_of_one_job(run, last); });
  } else {
    found = all_named(name, state_folder);
  }
  const bool is_one_job =
      std::all_of(found.begin(), found.end(), [&](const RunEntry& run) { return are_of_one_job(run, found.front()); });
  if (!is_one_job) refuse_several(name, found);
  const auto has_worked = [](const RunEntry& run) {
    if (run.waits) return false;
    const std::optional<Timeline> timeline = read_run(run).timeline;
    return timeline && !timeline->workers.empty();
  };
  const auto newest = std::find_if(found.rbegin(), found.rend(), has_worked);
  return newest == found.rend() ? found.back() : *newest;
}

RunEntry living_run(const std::string& name, const std::filesystem::path& state_folder, const std::string& command) {
  if (!name.empty()) {
    const std::vector<RunEntry> found = all_named(name, state_folder);
    const std::vector<RunEntry> alive = alive_of(found);
    if (alive.size() == 1) return alive.front();
    if (found.size() > 1) refuse_several(name, alive.empty() ? found : alive);
    throw UserError("run '" + found.front().id + "' has ended", "'lrun report " + found.front().id + "' says how");
  }
  const std::vector<RunEntry> all = list_all(state_folder);
  std::vector<RunEntry> runs = alive_of(all);
  if (std::any_of(runs.begin(), runs.end(), [](const RunEntry& run) { return !run.waits; })) {
    std::erase_if(runs, [](const RunEntry& run) { return run.waits; });  // they have no ranks yet
  }
  if (runs.size() == 1) return runs.front();
  if (!runs.empty())
    throw UserError("several runs are alive", "name one: '" + command + " RUN' with " + newest_of(runs));
  throw UserError("no run is alive in '" + state_folder.string() + "'",
                  all.empty() ? std::string(kNothingRan)
                              : "the last one was '" + all.back().id + "'; " +
                                    (command.starts_with("lrun logs") ? "'lrun logs' shows what it wrote"
                                                                      : "'lrun report' says how it ended"));
}

std::vector<LivingLauncher> ask_launchers(const RunEntry& run) {
  std::vector<LivingLauncher> launchers;
  for (const std::filesystem::path& part : run.parts) {
    if (is_stale(part)) continue;
    const ControlAnswer answer = ask_run(part, "status", kAnswerLimit);
    std::error_code error;  // one that waited for its job has begun, or ended, since
    if (answer.kind == ControlAnswer::Kind::kNoRun && !std::filesystem::exists(part, error)) continue;
    launchers.push_back({part, run_status_from_json(answer.text), answer.kind == ControlAnswer::Kind::kElsewhere});
    if (launchers.back().status) launchers.back().status->job = run.job();
  }
  return launchers;
}

std::vector<std::string> ask_job(const LivingLauncher& launcher, std::string_view words, Duration limit) {
  return answers_of_job(ask_run(launcher.folder, fmt::format("{}{}", kJobCommand, words), limit).text);
}

const LivingLauncher* speaker_of(const std::vector<LivingLauncher>& launchers) {
  const LivingLauncher* speaker = nullptr;
  for (const LivingLauncher& launcher : launchers) {
    if (!launcher.status || launcher.status->waiting()) continue;
    if (launcher.status->nodes > 1) return &launcher;
    if (!launcher.status->hosts.empty()) speaker = &launcher;
  }
  return speaker;
}

std::vector<RunStatus> ask_others(const std::vector<LivingLauncher>& launchers) {
  const auto is_node = [](const LivingLauncher& launcher) { return launcher.status && launcher.status->hosts.empty(); };
  const auto answers = std::count_if(launchers.begin(), launchers.end(), is_node);
  const LivingLauncher* const speaker = speaker_of(launchers);
  if (speaker == nullptr || std::max(speaker->status->nodes, count_running(speaker->status->hosts)) <= answers)
    return {};
  std::vector<RunStatus> others;
  for (const std::string& answer : ask_job(*speaker, "status", kAnswerLimit)) {
    std::optional<RunStatus> other = run_status_from_json(answer);
    const bool is_known =
        other && std::any_of(launchers.begin(), launchers.end(), [&](const LivingLauncher& launcher) {
          return launcher.status && launcher.status->host == other->host && launcher.status->pid == other->pid;
        });
    if (!other || is_known) continue;
    other->argv = speaker->status->argv;  // all have the command
    other->job = speaker->status->job;
    others.push_back(*std::move(other));
  }
  const auto first_rank = [](const RunStatus& it) { return it.workers.empty() ? it.world_size : it.workers[0].rank; };
  std::sort(others.begin(), others.end(),
            [&](const RunStatus& one, const RunStatus& two) { return first_rank(one) < first_rank(two); });
  return others;
}

bool has_launcher_for_each_rank(const RunEntry& run) {
  return run.parts.front().filename().string().starts_with("rank_");
}

RunFiles read_run(const RunEntry& run) {
  std::vector<Timeline> timelines;
  std::vector<std::filesystem::path> folders;
  for (const std::filesystem::path& part : run.parts) {
    const std::optional<std::string> events = read_small_file(part / "events.jsonl", kMostEventBytes);
    std::optional<Timeline> timeline = events ? timeline_from_events(*events) : std::nullopt;
    if (!timeline) continue;
    timelines.push_back(*std::move(timeline));
    folders.push_back(part);
  }
  const std::filesystem::path& decides = timelines.empty() ? run.parts.front() : folders[deciding_part(timelines)];
  RunFiles files;
  if (!run.alive) files.result = read_small_file(decides / "result.json", kMostResultBytes);
  if (timelines.empty()) return files;
  files.timeline = merged(std::move(timelines));
  if (!run.alive) return files;
  files.timeline->ended_ms = 0;  // a launcher may have left the job
  files.timeline->reason.clear();
  files.timeline->exit_code = 0;
  return files;
}

Timeline timeline_in(RunFiles files, const RunEntry& run) {
  if (files.timeline) return *std::move(files.timeline);
  throw UserError("run '" + run.id + "' left no events", "its folder is '" + run.folder.string() + "'");
}

std::vector<Timeline> timelines_of_job(const RunEntry& run, Timeline timeline,
                                       const std::filesystem::path& state_folder) {
  timeline.launched_ms = launched_ms(run);
  std::vector<Timeline> job;
  bool is_past = false;
  for (const RunEntry& other : list_runs(state_folder)) {
    const bool is_it = other.id == run.id;
    if (!is_it && !are_of_one_job(other, run)) continue;
    if (!job.empty() && job.back().succeeded()) {
      if (is_past) break;
      job.clear();
    }
    std::optional<Timeline> found = is_it ? timeline : read_run(other).timeline;
    if (!found || found->workers.empty()) continue;
    if (!is_it) {
      found->launched_ms = launched_ms(other);
      if (other.alive) found->now_ms = wall_ms();
    }
    const auto is_beside_it = [&] { return !job.empty() && found->started_ms < job.back().last_ms(); };
    while (is_it && is_beside_it()) job.pop_back();
    if (is_beside_it()) continue;
    job.push_back(*std::move(found));
    is_past = is_past || is_it;
  }
  return is_past ? job : std::vector<Timeline>{timeline};
}

std::vector<RunEntry> living_runs(const std::string& name, const std::filesystem::path& state_folder) {
  if (!name.empty()) return {living_run(name, state_folder, {})};
  return alive_of(list_all(state_folder));
}

std::string text_of_waiting(const RunEntry& run) {
  std::string text;
  for (const LivingLauncher& launcher : ask_launchers(run)) {
    if (launcher.status) text += status_text(*launcher.status, wall_ms());
  }
  return text.empty() ? fmt::format("run {}: has not begun\n", run.id) : text;
}

}  // namespace lrun::launcher
