// In: the runs that are alive, as their launchers here and on other nodes answer, and /proc. Out: their state on
// stdout, once or, with --watch, again and again. run_verb() calls it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/console_descriptor.h"
#include "base/nearest.h"
#include "base/shortened.h"
#include "base/split.h"
#include "commands/find_run.h"
#include "commands/verbs.h"
#include "commands/watch_keys.h"
#include "inspect/gpu_use.h"
#include "inspect/rank_meter.h"
#include "inspect/run_directory.h"
#include "inspect/unusual_ranks.h"
#include "logs/terminal_text.h"
#include "process/descendants.h"
#include "process/exit_codes.h"
#include "report/diagnostics.h"
#include "report/runs_text.h"
#include "report/status_text.h"
#include "report/watched_screen.h"

namespace lrun::launcher {
namespace {

constexpr Duration kGpuLimit(2000);
constexpr std::size_t kMostNamesBytes = 120;

struct Answers {
  std::vector<RunStatus> statuses;
  std::vector<RunStatus> others;                              ///< of launchers on other hosts
  std::set<std::string> silent;                               ///< ids of runs
  std::map<std::string, std::size_t> untold;                  ///< launchers of runs that the others could not ask
  std::map<std::string, std::vector<std::string>> mute;       ///< hosts of runs, by the head's list, that said nothing
  std::map<std::string, std::vector<std::string>> elsewhere;  ///< the parts of runs that are on other hosts
};

/// Launchers of the job that have not told their status, while those of this host have.
/// \param ended  launchers of this host
std::size_t count_untold(const std::vector<LivingLauncher>& here, const std::vector<RunStatus>& others,
                         std::size_t ended) {
  std::size_t nodes = 0;
  std::size_t told = others.size() + ended;
  for (const LivingLauncher& launcher : here) {
    if (!launcher.status && !launcher.is_elsewhere) return 0;  // a silent one is told of by itself
    if (!launcher.status || !launcher.status->hosts.empty() || launcher.status->waiting()) continue;
    nodes = std::max(nodes, static_cast<std::size_t>(launcher.status->nodes));
    ++told;
  }
  return nodes > told ? nodes - told : 0;
}

/// Hosts that run, as the head says, and have not told their status.
std::vector<std::string> mute_hosts(const std::vector<LivingLauncher>& here, const std::vector<RunStatus>& others) {
  std::set<std::string> told;
  for (const RunStatus& other : others) told.insert(other.host);
  for (const LivingLauncher& launcher : here) {
    if (launcher.status) told.insert(launcher.status->host);
  }
  std::vector<std::string> mute;
  for (const LivingLauncher& launcher : here) {
    if (!launcher.status) continue;
    for (const HostStatus& host : launcher.status->hosts) {
      if (host.state == kHostRuns && !told.contains(host.name)) mute.push_back(host.name);
    }
  }
  return mute;
}

void ask(const RunEntry& run, Answers& answers) {
  std::vector<LivingLauncher> launchers = ask_launchers(run);
  const std::vector<RunStatus> others = ask_others(launchers);
  if (auto mute = mute_hosts(launchers, others); !mute.empty()) {
    answers.mute[run.id] = std::move(mute);
  } else if (const std::size_t untold = count_untold(launchers, others, run.parts.size() - launchers.size());
             untold > 0) {
    answers.untold[run.id] = untold;
  }
  answers.others.insert(answers.others.end(), others.begin(), others.end());
  for (LivingLauncher& launcher : launchers) {
    if (launcher.status) {
      answers.statuses.push_back(*std::move(launcher.status));
    } else if (launcher.is_elsewhere) {
      if (others.empty()) answers.elsewhere[run.id].push_back(launcher.folder.filename().string());
    } else if (!is_stale(launcher.folder)) {  // else it has ended since
      answers.silent.insert(run.id);
    }
  }
}

/// Adds what the kernel and the driver say about the processes of ranks here, and then the launchers elsewhere.
void complete(Answers& answers, RankMeter& meter) {
  std::vector<RunStatus>& runs = answers.statuses;
  if (runs.empty()) return;
  const ProcessTable table = read_process_table();
  const std::vector<ProcessOnGpu> processes = read_gpu_use(kGpuLimit);
  for (RunStatus& run : runs) {
    meter.measure(run, table);
    add_gpu_use(run, processes, parent_of);
  }
  runs.insert(runs.end(), answers.others.begin(), answers.others.end());
  mark_unusual(runs);
}

/// Names launchers that are not in the table.
void tell_of_others(const Answers& answers, MessageSink& sink) {
  for (const RunStatus& status : answers.others) {
    if (status.ranks_left_out == 0) continue;
    sink.note(
        fmt::format("{} of '{}' not shown: its answer was cut", counted(status.ranks_left_out, "rank"), status.host));
  }
  for (const auto& [id, hosts] : answers.mute) {
    sink.note(fmt::format("ranks of {} of run '{}' not shown, which did not answer in time: {}",
                          counted(hosts.size(), "host"), id, shortened(join_words(hosts, ", "), kMostNamesBytes)));
  }
  for (const auto& [id, launchers] : answers.untold) {
    sink.note(
        fmt::format("run '{}' has {} on other nodes that did not answer in time", id, counted(launchers, "launcher")));
  }
  for (const std::string& id : answers.silent) {
    sink.error(fmt::format("run '{}' is alive and does not answer: a launcher of it hangs, starts or ends", id));
  }
  for (const auto& [id, parts] : answers.elsewhere) {
    sink.note(fmt::format("run '{}' has {} on other hosts, where 'lrun status' shows them: {}", id,
                          counted(parts.size(), "launcher"), shortened(join_words(parts, ", "), kMostNamesBytes)));
  }
}

/// Keeps messages as lines of a screen.
class LineSink final : public MessageSink {
 public:
  void print(Severity severity, std::string_view text) noexcept override { print_lines(message_line(severity, text)); }
  void print_lines(std::string_view lines) noexcept override {
    for (std::string& line : split_lines(lines)) lines_.push_back(std::move(line));
  }
  void print_of_job(std::string_view lines) noexcept override { print_lines(lines); }
  [[nodiscard]] bool colour() const noexcept override { return false; }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

/// The text for stdout: a terminal gets no line that is wider than it, so that tables stay tables.
std::string fitted_to_stdout(const std::string& text) {
  const ConsoleDescriptor out(STDOUT_FILENO);
  if (!out.terminal()) return text;
  std::string all;
  for (const std::string& line : split_lines(text)) all += fitted(line, out.size().columns) + "\n";
  return all;
}

/// With the run that ended last, which is looked for then.
std::string no_run_text(const std::filesystem::path& state) {
  std::string text = fmt::format("no run is alive in '{}'\n", state.string());
  const std::vector<RunEntry> kept = list_runs(state);
  if (kept.empty()) return text;
  const auto [timeline, result] = read_run(kept.back());
  const std::int64_t ended_ms = timeline ? timeline->last_ms() : 0;
  const Duration age(std::max<std::int64_t>(0, wall_ms() - ended_ms));
  return text + fmt::format("the last one was '{}'{}: {}; 'lrun report' tells what happened\n", kept.back().id,
                            ended_ms == 0 ? "" : fmt::format(", which ended {} ago", format_elapsed(age)),
                            result_words(result));
}

std::string text_of_all(const Answers& answers) {
  std::string text;
  for (const RunStatus& status : with_hosts_joined(answers.statuses)) text += status_text(status, wall_ms());
  return text;
}

/// `lrun status --watch`: looks again and again, until none of the runs is alive.
class StatusWatch {
 public:
  StatusWatch(const VerbRequest& request, const std::filesystem::path& state, MessageSink& sink)
      : request_(request), state_(state), sink_(sink), stdout_(STDOUT_FILENO) {
    if (stdout_.terminal() && !request.json) keys_.emplace();
  }

  int run() {
    runs_ = living_runs(request_.run, state_);
    if (runs_.empty() && !request_.json && !print_to_stdout(no_run_text(state_), sink_)) return kExitRefused;
    bool was_empty = runs_.empty();  // one that has waited for its job is in no list while its workers are started
    for (std::map<std::string, std::string> ended; look(ended); ended = results_of_ended()) {
      constexpr Duration kBetweenLooks(2000);
      if (runs_.empty() && (was_empty || !ended.empty())) return 0;
      was_empty = runs_.empty();
      if (keys_ ? !keys_->wait(kBetweenLooks) : !wait_while_stdout_is_read(kBetweenLooks)) return 0;
    }
    return kExitRefused;
  }

 private:
  /// \param ended  the results of runs that have ended since the last look \return false: stdout takes nothing
  bool look(const std::map<std::string, std::string>& ended) {
    Answers answers;
    for (const RunEntry& run : runs_) ask(run, answers);
    complete(answers, meter_);
    if (request_.json) {
      return print_to_stdout(status_json(answers.statuses, answers.silent, answers.elsewhere, &ended), sink_);
    }
    std::string results;
    for (const auto& [id, words] : ended) results += fmt::format("run {} has ended: {}\n", id, words);
    if (runs_.empty()) return print_to_stdout(results, sink_);
    return stdout_.terminal() ? draw(answers, results) : print_block(answers, results);
  }

  bool draw(const Answers& answers, const std::string& results) {
    LineSink remarks;
    tell_of_others(answers, remarks);
    if (answers.statuses.empty() && remarks.lines().empty() && results.empty()) return true;  // it ends
    const auto size = stdout_.size();
    return print_to_stdout(
        screen_.draw(results, watched_lines(with_hosts_joined(answers.statuses), remarks.lines(), wall_ms(), size),
                     size),
        sink_);
  }

  bool print_block(const Answers& answers, const std::string& results) {
    const std::string text = results + text_of_all(answers);
    const bool printed = text.empty() || print_to_stdout(text + "\n", sink_);
    tell_of_others(answers, sink_);
    return printed;
  }

  /// The runs that are not alive any more leave. Those that have begun come, without RUN, or where it has waited for
  /// its job: it goes on under the id of that.
  std::map<std::string, std::string> results_of_ended() {
    std::map<std::string, std::string> ended;
    const std::vector<RunEntry> living = living_runs({}, state_);
    for (const RunEntry& before : std::exchange(runs_, {})) {
      if (const auto same = find(living, before); same != living.end()) {
        runs_.push_back(*same);
        continue;
      }
      const std::optional<RunEntry> run = run_in(before.folder);
      if (!run) takes_all_ = true;
      if (run && run->alive) runs_.push_back(*run);
      if (run && !run->alive) ended[run->id] = result_words(read_run(*run).result);
    }
    if (!takes_all_) return ended;
    for (const RunEntry& run : living) {
      if (find(runs_, run) == runs_.end()) runs_.push_back(run);
    }
    return ended;
  }

  static std::vector<RunEntry>::const_iterator find(const std::vector<RunEntry>& runs, const RunEntry& run) {
    return std::find_if(runs.begin(), runs.end(), [&](const RunEntry& known) { return known.folder == run.folder; });
  }

  const VerbRequest& request_;
  const std::filesystem::path& state_;
  MessageSink& sink_;
  ConsoleDescriptor stdout_;
  std::vector<RunEntry> runs_;
  bool takes_all_ = request_.run.empty();
  RankMeter meter_;
  WatchedScreen screen_;
  std::optional<WatchKeys> keys_;
};

}  // namespace

int status_verb(const VerbRequest& request, const Environment& environment, MessageSink& sink) {
  const std::filesystem::path state = state_folder(environment);
  if (request.watch) return StatusWatch(request, state, sink).run();
  Answers answers;
  for (const RunEntry& run : living_runs(request.run, state)) ask(run, answers);
  RankMeter meter;
  complete(answers, meter);
  std::string text = text_of_all(answers);
  const bool some_live = !text.empty() || !answers.silent.empty() || !answers.elsewhere.empty();
  if (!some_live) text = no_run_text(state);
  const bool printed = print_to_stdout(
      request.json ? status_json(answers.statuses, answers.silent, answers.elsewhere) : fitted_to_stdout(text), sink);
  tell_of_others(answers, sink);
  return printed && answers.silent.empty() ? 0 : kExitRefused;
}

}  // namespace lrun::launcher
