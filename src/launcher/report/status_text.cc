// In: the status of runs, as their launchers answered. Out: the text or the JSON of `lrun status`. Pure.
#include "report/status_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/duration.h"
#include "base/nearest.h"
#include "base/shell_words.h"
#include "base/shortened.h"
#include "logs/terminal_text.h"
#include "plan/python_program.h"
#include "report/without_secrets.h"

namespace lrun::launcher {

std::string phase_text(const RunStatus& status) {
  if (status.suspended) return "suspended";
  if (status.phase == "backing_off") return "waiting to start its workers again";
  if (status.phase == "between_rounds") return "waiting for other nodes to start again";
  if (status.phase == "lingering") return "waiting for processes that its workers left";
  return status.phase == "killing" ? "killing its workers" : status.phase;
}

namespace {

constexpr std::size_t kMostCommandColumns = 60;
constexpr std::size_t kMostLines = 20;  ///< of ranks that differ in numbers only
constexpr std::size_t kMostNamesColumns = 120;

/// 'run 20261122-151500-abc123 (job 31.0, pid 100 on node0)'.
std::string name_of_run(const RunStatus& status, bool says_host) {
  constexpr std::size_t kMostPids = 4;
  std::vector<std::string> pids{std::to_string(status.pid)};
  for (const pid_t pid : status.other_pids) pids.push_back(std::to_string(pid));
  return fmt::format("run {} ({}{} {}{})", terminal_safe(status.run_id),
                     status.job.empty() ? std::string() : "job " + terminal_safe(status.job) + ", ",
                     pids.size() == 1 ? "pid" : "pids", join_first(pids, kMostPids),
                     says_host && !status.host.empty() ? " on " + terminal_safe(status.host) : std::string());
}

/// Only the run itself has a time since which its status holds.
std::string since_when(const RunStatus& status, std::int64_t now_ms) {
  const std::int64_t ms = status.running_ms > 0 ? status.running_ms : now_ms - status.started_ms;
  const std::string age = format_elapsed(Duration(std::max<std::int64_t>(0, ms)));
  const std::string phase = phase_text(status);
  return phase == "running" ? fmt::format("running for {}", age) : fmt::format("{}, started {} ago", phase, age);
}

/// Of a launcher that waits for its job, or of a head that waits for its hosts.
std::string waiting_text(const RunStatus& status) {
  const std::string whom = status.hosts.empty() ? "the job's other launchers at " + status.meets_at : "its hosts";
  const std::string limit =
      status.gives_up_in_ms < 0 ? std::string() : "; gives up in " + format_elapsed(Duration(status.gives_up_in_ms));
  return fmt::format("{}: waiting for {} for {}: {}\n  {}{}\n", name_of_run(status, true),
                     format_elapsed(Duration(status.running_ms)), terminal_safe(whom),
                     command_text(status.argv, kMostCommandColumns), terminal_safe(status.waits_for), limit);
}

/// Of a head. Hosts in the same state share a line.
std::string status_of_hosts(const RunStatus& status, std::int64_t now_ms) {
  std::string text =
      fmt::format("{}: {}, {}: {}\n", name_of_run(status, false), terminal_safe(since_when(status, now_ms)),
                  counted(status.hosts.size(), "host"), command_text(status.argv, kMostCommandColumns));
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const HostStatus& host : status.hosts) {
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const auto& it) { return it.first == host.state; });
    auto& names =
        same == groups.end() ? groups.emplace_back(host.state, std::vector<std::string>()).second : same->second;
    names.push_back(host.name);
  }
  for (const auto& [state, names] : groups) {
    text += fmt::format("  {}: {}\n", terminal_safe(state),
                        shortened(terminal_safe(join_words(names, ", ")), kMostNamesColumns));
  }
  return text;
}

/// The words that tell runs apart where little fits: 'train.py --lr 1' of '/usr/bin/python3 -u /home/me/train.py --lr
/// 1'.
std::vector<std::string> without_python_and_folders(const std::vector<std::string>& argv) {
  const bool of_python = !argv.empty() && is_python(argv.front());
  std::vector<std::string> words = of_python ? parts_of_python(argv).program : argv;
  if (words.empty()) return argv;
  for (std::string& word : words) {
    const bool is_path = &word == &words.front() || word.starts_with('/') || word.starts_with("./");
    if (is_path && !word.ends_with('/') && shell_line({word}) == word) word.erase(0, word.rfind('/') + 1);
  }
  return words;
}

std::string line_of(const std::vector<std::string>& argv, std::size_t most) {
  std::string text;
  for (const std::string& word : argv) {
    if (!text.empty()) text += ' ';
    text += shell_line({word});
    if (text.size() > most) break;
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// An answer from another launcher lacks the command.
bool are_alike_on_one_host(const RunStatus& one, const RunStatus& other) {
  const auto looks = [](const RunStatus& status) {
    return std::tie(status.run_id, status.host, status.phase, status.attempt, status.suspended, status.world_size,
                    status.strategy);
  };
  const bool is_one_command = one.argv.empty() || other.argv.empty() || one.argv == other.argv;
  return !one.waiting() && one.hosts.empty() && other.hosts.empty() && is_one_command && looks(one) == looks(other);
}

}  // namespace

std::vector<RunStatus> with_hosts_joined(const std::vector<RunStatus>& launchers) {
  std::vector<RunStatus> joined;
  for (const RunStatus& launcher : launchers) {
    const auto same = std::find_if(joined.begin(), joined.end(),
                                   [&](const RunStatus& one) { return are_alike_on_one_host(one, launcher); });
    if (same == joined.end()) {
      joined.push_back(launcher);
      continue;
    }
    std::vector<pid_t>& pids = same->other_pids;
    pids.insert(std::upper_bound(pids.begin(), pids.end(), launcher.pid), launcher.pid);
    if (pids.front() < same->pid) std::swap(pids.front(), same->pid);
    same->running_ms = std::max(same->running_ms, launcher.running_ms);
    same->workers.insert(same->workers.end(), launcher.workers.begin(), launcher.workers.end());
    std::stable_sort(same->workers.begin(), same->workers.end(),
                     [](const WorkerStatus& first, const WorkerStatus& second) { return first.rank < second.rank; });
  }
  return joined;
}

std::string command_text(const std::vector<std::string>& argv, std::size_t most) {
  const std::vector<std::string> words = without_secrets(argv);
  std::string text = line_of(words, most);
  if (text.size() > most) text = line_of(without_python_and_folders(words), most);
  return shortened(terminal_safe(text), most);
}

std::string status_text(const RunStatus& status, std::int64_t now_ms, RankFold fold) {
  if (status.waiting()) return waiting_text(status);
  if (!status.hosts.empty()) return status_of_hosts(status, now_ms);
  const std::string attempt = status.attempt > 0 ? fmt::format(", attempt {}", status.attempt) : std::string();
  std::string text = fmt::format("{}: {}{}, world size {}, {}: {}\n", name_of_run(status, status.nodes > 1),
                                 terminal_safe(since_when(status, now_ms)), attempt, status.world_size,
                                 terminal_safe(status.strategy), command_text(status.argv, kMostCommandColumns));
  std::vector<std::string> table = rank_table(status.workers, fold);
  if (fold == RankFold::kAlike && table.size() > kMostLines) table = rank_table(status.workers, RankFold::kState);
  for (const std::string& line : table) text += line + "\n";
  return text;
}

std::string status_json(const std::vector<RunStatus>& runs, const std::set<std::string>& silent,
                        const std::map<std::string, std::vector<std::string>>& elsewhere,
                        const std::map<std::string, std::string>* ended) {
  nlohmann::json list = nlohmann::json::array();
  for (RunStatus run : runs) {
    run.argv = without_secrets(std::move(run.argv));
    list.push_back(nlohmann::json::parse(to_json(run)));
  }
  nlohmann::json all{{"schema", 1}, {"runs", list}, {"silent", silent}, {"elsewhere", elsewhere}};
  if (ended != nullptr) all["ended"] = *ended;
  const int indent = ended != nullptr ? -1 : 1;
  return all.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lrun::launcher
