// In: the timelines of a job's runs. Out: what its time was spent on. Called by `lrun report`. Pure.
#include "report/goodput.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace lrun::launcher {
namespace {

using Fate = WorkerSpan::Fate;
using Workers = std::vector<const WorkerSpan*>;

/// The workers of one start, on all nodes.
struct Round {
  Workers workers;
  std::int64_t began_ms = 0;
  std::int64_t stop_ms = 0;  ///< when the first failed, or lrun began to stop them; else as `end_ms`
  std::int64_t end_ms = 0;   ///< when the last had ended
  bool was_stopped = false;  ///< by lrun
  bool has_next = false;     ///< the same run has started workers again
};

std::int64_t reached_ms(const WorkerSpan& worker, std::string_view milestone) {
  for (const Milestone& it : worker.milestones) {
    if (it.what == milestone) return it.ms;
  }
  return 0;
}

bool all_have_ended(const Workers& workers) {
  return std::all_of(workers.begin(), workers.end(), [](const WorkerSpan* it) { return it->ended_ms != 0; });
}

bool all_succeeded(const Workers& workers) {
  return std::all_of(workers.begin(), workers.end(), [](const WorkerSpan* it) { return it->fate == Fate::kSucceeded; });
}

std::vector<Round> rounds_of(const Timeline& run) {
  std::vector<Round> rounds;
  for (const WorkerSpan& worker : run.workers) {
    if (rounds.empty() || rounds.back().workers.front()->round != worker.round) rounds.emplace_back();
    rounds.back().workers.push_back(&worker);
  }
  for (Round& round : rounds) {
    round.began_ms = round.workers.front()->spawned_ms;
    for (const WorkerSpan* worker : round.workers) round.began_ms = std::min(round.began_ms, worker->spawned_ms);
  }
  return rounds;
}

/// Sets when it stopped and ended. `latest_ms`: when the next one began, or the last that is known of the run.
void end_round(Round& round, const Timeline& run, std::int64_t latest_ms) {
  for (const WorkerSpan* worker : round.workers) {
    round.end_ms = std::max(round.end_ms, worker->ended_ms != 0 ? worker->ended_ms : latest_ms);
  }
  round.stop_ms = round.end_ms;
  for (const WorkerSpan* worker : round.workers) {
    const bool was_ended = worker->fate == Fate::kFailed || worker->fate == Fate::kStopped;
    if (was_ended) round.stop_ms = std::min(round.stop_ms, worker->ended_ms);
  }
  for (const std::int64_t stop : run.stops_ms) {
    if (stop < round.began_ms || stop > round.end_ms) continue;
    round.stop_ms = std::min(round.stop_ms, stop);
    round.was_stopped = true;
  }
}

/// A milestone that says that a worker is ready, and the ranks that ever reached it.
struct ReadySign {
  Goodput::Ready ready = Goodput::Ready::kUnknown;
  std::string_view milestone;
  std::set<int> ranks;
};

std::vector<ReadySign> signs_in(const std::vector<Timeline>& runs) {
  std::vector<ReadySign> signs;
  for (const auto& [ready, milestone] :
       {std::pair(Goodput::Ready::kByStep, kFirstStep), std::pair(Goodput::Ready::kByStore, kConnectedToStore)}) {
    ReadySign sign{ready, milestone, {}};
    for (const Timeline& run : runs) {
      for (const WorkerSpan& worker : run.workers) {
        if (reached_ms(worker, milestone) != 0) sign.ranks.insert(worker.rank);
      }
    }
    if (!sign.ranks.empty()) signs.push_back(std::move(sign));
  }
  return signs;
}

/// When the last of them did it; empty: one has not.
std::optional<std::int64_t> all_did(const ReadySign& sign, const Workers& workers) {
  std::int64_t last = 0;
  for (const WorkerSpan* worker : workers) {
    if (!sign.ranks.contains(worker->rank)) continue;
    const std::int64_t when = reached_ms(*worker, sign.milestone);
    if (when == 0) return std::nullopt;
    last = std::max(last, when);
  }
  return last;
}

std::int64_t ready_time(const Round& round, const std::vector<ReadySign>& signs) {
  if (signs.empty()) return round.began_ms;
  for (const ReadySign& sign : signs) {
    if (const std::optional<std::int64_t> ready = all_did(sign, round.workers)) return *ready;
    if (all_have_ended(round.workers)) break;  // else first steps may not be written yet
  }
  return round.stop_ms;
}

/// Up to when its work is kept; 0: no checkpoint is known.
std::int64_t kept_until(const Round& round, const Timeline& run) {
  std::int64_t newest = 0;
  for (const CheckpointTimes& found : run.checkpoints) {
    if (found.round != round.workers.front()->round) continue;
    newest = std::max({newest, found.kept_ms, round.has_next ? found.in_memory_ms : 0});
  }
  return newest;
}

AttemptUse::End end_of(const Round& round, const Timeline& run) {
  if (all_succeeded(round.workers) && !round.was_stopped) return AttemptUse::End::kSucceeded;
  const auto has = [&](Fate fate) {
    return std::any_of(round.workers.begin(), round.workers.end(),
                       [&](const WorkerSpan* worker) { return worker->fate == fate; });
  };
  if (has(Fate::kFailed)) return AttemptUse::End::kFailed;
  if (!has(Fate::kRunning)) return AttemptUse::End::kStopped;
  return run.now_ms != 0 && !round.has_next ? AttemptUse::End::kRuns : AttemptUse::End::kUnknown;
}

/// Hands out the time of a job piece by piece, none twice, whatever the clocks of its hosts say.
class Clock {
 public:
  explicit Clock(std::int64_t ms) : ms_(ms) {}

  /// The time up to then that nobody had yet.
  std::int64_t take_until(std::int64_t ms) { return std::max(ms, ms_) - std::exchange(ms_, std::max(ms, ms_)); }
  [[nodiscard]] std::int64_t now() const { return ms_; }

 private:
  std::int64_t ms_;
};

TimeUse use_of(const Round& round, const AttemptUse::End end, std::int64_t ready_ms, std::int64_t kept_ms,
               Clock& clock) {
  TimeUse use;
  use.waiting = clock.take_until(round.began_ms);
  use.starting = clock.take_until(std::min(ready_ms, round.stop_ms));
  const bool keeps_all = end == AttemptUse::End::kSucceeded || end == AttemptUse::End::kRuns;
  use.useful = clock.take_until(keeps_all ? round.stop_ms : std::min(kept_ms, round.stop_ms));
  use.lost = clock.take_until(round.stop_ms);
  use.stopping = clock.take_until(round.end_ms);
  return use;
}

void add_run(Goodput& goodput, const Timeline& run, const std::vector<ReadySign>& signs, Clock& clock) {
  std::vector<Round> rounds = rounds_of(run);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    Round& round = rounds[i];
    round.has_next = i + 1 < rounds.size();
    end_round(round, run, round.has_next ? rounds[i + 1].began_ms : run.last_ms());
    const AttemptUse::End end = end_of(round, run);
    const std::int64_t kept_ms = kept_until(round, run);
    TimeUse use = use_of(round, end, ready_time(round, signs), kept_ms, clock);
    const bool is_over = run.now_ms == 0 && !round.has_next;
    if (is_over) use.stopping += clock.take_until(run.last_ms());
    goodput.knows_checkpoints = goodput.knows_checkpoints || kept_ms != 0;
    goodput.attempts.push_back({run.run_id, round.workers.front()->attempt, round.began_ms, use, end});
    goodput.use += use;
  }
  goodput.use.waiting += clock.take_until(run.last_ms());
}

}  // namespace

TimeUse& TimeUse::operator+=(const TimeUse& other) {
  useful += other.useful;
  starting += other.starting;
  lost += other.lost;
  waiting += other.waiting;
  stopping += other.stopping;
  return *this;
}

double Goodput::share() const {
  const std::int64_t whole = use.whole();
  return whole == 0 ? 0 : static_cast<double>(use.useful) / static_cast<double>(whole);
}

Goodput goodput_of(const std::vector<Timeline>& runs) {
  const std::vector<ReadySign> signs = signs_in(runs);
  Goodput goodput;
  goodput.runs = static_cast<int>(runs.size());
  if (!signs.empty()) goodput.ready = signs.front().ready;
  const Timeline& first = runs.front();
  const bool waited = first.launched_ms != 0 && first.launched_ms < first.started_ms;
  goodput.began_ms = waited ? first.launched_ms : first.started_ms;
  Clock clock(goodput.began_ms);
  for (const Timeline& run : runs) add_run(goodput, run, signs, clock);
  goodput.until_ms = clock.now();
  return goodput;
}

}  // namespace lrun::launcher
