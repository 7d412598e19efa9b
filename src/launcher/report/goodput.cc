// In: the timelines of a job's runs. Out: the uses of its time. Called by `lrun report`. Pure.
#include "report/goodput.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace lrun::launcher {
namespace {

using End = AttemptUse::End;
using Fate = WorkerSpan::Fate;
using Workers = std::vector<const WorkerSpan*>;

/// The workers of one start, on all nodes.
struct Round {
  Workers workers;
  std::int64_t began_ms = 0;
  std::int64_t stop_ms = 0;  ///< when the first failed, or lrun began to stop them; else as `end_ms`
  std::int64_t end_ms = 0;   ///< when the last had ended
  bool has_next = false;     ///< the same run has started workers again
  std::int64_t kept_ms = 0;  ///< when the newest checkpoint was written that counts; 0: none is known
  End end = End::kUnknown;
};

bool any_has(const Workers& workers, Fate fate) {
  return std::any_of(workers.begin(), workers.end(), [&](const WorkerSpan* it) { return it->fate == fate; });
}

bool all_have_ended(const Workers& workers) {
  return std::all_of(workers.begin(), workers.end(), [](const WorkerSpan* it) { return it->ended_ms != 0; });
}

std::vector<Round> rounds_of(const Timeline& run) {
  std::vector<Round> rounds;
  for (const WorkerSpan& worker : run.workers) {
    if (rounds.empty() || rounds.back().workers.front()->round != worker.round) {
      rounds.push_back({.began_ms = worker.spawned_ms});
    }
    rounds.back().workers.push_back(&worker);
    rounds.back().began_ms = std::min(rounds.back().began_ms, worker.spawned_ms);
  }
  for (std::size_t i = 0; i + 1 < rounds.size(); ++i) rounds[i].has_next = true;
  return rounds;
}

/// The last moment in which it was seen to live.
std::int64_t last_sign_of(const WorkerSpan& worker) {
  std::int64_t last = std::max(worker.spawned_ms, worker.ended_ms);
  for (const Milestone& it : worker.milestones) last = std::max(last, it.ms);
  for (const UsageSample& sample : worker.usage) last = std::max(last, sample.ms);
  return last;
}

End end_of(const Round& round, const Timeline& run, bool was_stopped) {
  if (any_has(round.workers, Fate::kFailed)) return End::kFailed;
  if (any_has(round.workers, Fate::kStopped) || was_stopped) return End::kStopped;
  if (!round.has_next && run.succeeded()) return End::kSucceeded;
  if (!round.has_next && run.now_ms != 0) return End::kRuns;
  // The workers that are known have succeeded, and those of other nodes have not.
  return all_have_ended(round.workers) ? End::kFailed : End::kUnknown;
}

/// \param next_ms  when the next one began, or the last moment that is known of the run
void end_round(Round& round, const Timeline& run, std::int64_t next_ms) {
  std::int64_t first_stop = next_ms;
  bool was_stopped = false;
  for (const std::int64_t stop : run.stops_ms) {
    if (stop < round.began_ms || stop > next_ms) continue;
    first_stop = std::min(first_stop, stop);
    was_stopped = true;
  }
  for (const WorkerSpan* worker : round.workers) {
    round.end_ms = std::max(round.end_ms, last_sign_of(*worker));
    const bool was_ended = worker->fate == Fate::kFailed || worker->fate == Fate::kStopped;
    if (was_ended) first_stop = std::min(first_stop, worker->ended_ms);
  }
  round.end = end_of(round, run, was_stopped);
  const bool lives = !round.has_next && run.now_ms != 0 && !all_have_ended(round.workers);
  const bool nothing_stopped_it = first_stop == next_ms && round.end != End::kUnknown;  // it may be on other nodes
  if (lives || nothing_stopped_it) round.end_ms = std::max(round.end_ms, next_ms);
  round.end_ms = std::max(round.end_ms, was_stopped ? first_stop : 0);
  round.stop_ms = std::min(first_stop, round.end_ms);
}

/// Finds which checkpoints count. One in memory does where a later start of the run has kept something.
void find_checkpoints(std::vector<Round>& rounds, const Timeline& run) {
  bool is_kept_later = false;
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    std::int64_t kept = 0;
    std::int64_t in_memory = 0;
    for (const CheckpointTimes& found : run.checkpoints) {
      if (found.round != round->workers.front()->round) continue;
      kept = std::max(kept, found.kept_ms);
      in_memory = std::max(in_memory, found.in_memory_ms);
    }
    round->kept_ms = is_kept_later ? std::max(kept, in_memory) : kept;
    const bool ended_well = round->end == End::kSucceeded || round->end == End::kRuns;
    is_kept_later = is_kept_later || ended_well || kept > round->began_ms;
  }
}

std::int64_t reached_ms(const WorkerSpan& worker, std::string_view milestone) {
  for (const Milestone& it : worker.milestones) {
    if (it.what == milestone) return it.ms;
  }
  return 0;
}

/// A milestone that says that a worker is ready, and the ranks that ever reached it.
struct ReadySign {
  Goodput::Ready ready = Goodput::Ready::kUnknown;
  std::string_view milestone;
  std::set<int> ranks;
};

/// Those that a rank of the job has reached, the best first.
std::vector<ReadySign> signs_in(const std::vector<Timeline>& runs) {
  std::vector<ReadySign> signs{{Goodput::Ready::kByStep, kFirstStep, {}},
                               {Goodput::Ready::kByStore, kConnectedToStore, {}}};
  for (ReadySign& sign : signs) {
    for (const Timeline& run : runs) {
      for (const WorkerSpan& worker : run.workers) {
        if (reached_ms(worker, sign.milestone) != 0) sign.ranks.insert(worker.rank);
      }
    }
  }
  std::erase_if(signs, [](const ReadySign& sign) { return sign.ranks.empty(); });
  return signs;
}

/// When the last of them reached it; empty: one has not.
std::optional<std::int64_t> all_reached(const ReadySign& sign, const Workers& workers) {
  std::int64_t last = 0;
  for (const WorkerSpan* worker : workers) {
    if (!sign.ranks.contains(worker->rank)) continue;
    const std::int64_t when = reached_ms(*worker, sign.milestone);
    if (when == 0) return std::nullopt;
    last = std::max(last, when);
  }
  return last == 0 ? std::nullopt : std::optional(last);
}

/// First steps are written when a start is over: until then, and where lrun was killed, the store says it, and where
/// nobody uses that, nothing does.
std::int64_t ready_time(const Round& round, const std::vector<ReadySign>& signs) {
  const bool is_over = all_have_ended(round.workers);
  for (const ReadySign& sign : signs) {
    if (const std::optional<std::int64_t> ready = all_reached(sign, round.workers)) return *ready;
    if (is_over || sign.ready == Goodput::Ready::kByStore) return round.stop_ms;
  }
  return round.began_ms;
}

/// Hands out the time of a job piece by piece, none twice, whatever the clocks of its hosts say.
class UncountedTime {
 public:
  explicit UncountedTime(std::int64_t ms) : ms_(ms) {}

  /// The time up to then that nobody had yet.
  std::int64_t take_until(std::int64_t ms) { return std::max(ms, ms_) - std::exchange(ms_, std::max(ms, ms_)); }
  [[nodiscard]] std::int64_t now() const { return ms_; }

 private:
  std::int64_t ms_;
};

TimeUse use_of(const Round& round, std::int64_t ready_ms, UncountedTime& time) {
  TimeUse use;
  use.waiting = time.take_until(round.began_ms);
  use.starting = time.take_until(std::min(ready_ms, round.stop_ms));
  const bool keeps_all = round.end == End::kSucceeded || round.end == End::kRuns;
  use.useful = time.take_until(keeps_all ? round.stop_ms : std::min(round.kept_ms, round.stop_ms));
  use.lost = time.take_until(round.stop_ms);
  use.stopping = time.take_until(round.end_ms);
  return use;
}

/// After its last start a run waits for nodes, or ends.
bool waits_after(const Round& last, const Timeline& run) {
  return run.now_ms != 0 || std::any_of(run.goes_on_ms.begin(), run.goes_on_ms.end(),
                                        [&](std::int64_t ms) { return ms >= last.began_ms; });
}

void add_run(Goodput& goodput, const Timeline& run, const std::vector<ReadySign>& signs, UncountedTime& time) {
  std::vector<Round> rounds = rounds_of(run);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    end_round(rounds[i], run, rounds[i].has_next ? rounds[i + 1].began_ms : run.last_ms());
  }
  find_checkpoints(rounds, run);
  for (const Round& round : rounds) {
    TimeUse use = use_of(round, ready_time(round, signs), time);
    const bool is_over = !round.has_next && !waits_after(round, run);
    if (is_over) use.stopping += time.take_until(run.last_ms());
    goodput.knows_checkpoints = goodput.knows_checkpoints || round.kept_ms != 0;
    const WorkerSpan& worker = *round.workers.front();
    goodput.attempts.push_back({run.run_id, worker.attempt, worker.round, round.began_ms, use, round.end});
    goodput.use += use;
  }
  goodput.use.waiting += time.take_until(run.last_ms());
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
  UncountedTime time(goodput.began_ms);
  for (const Timeline& run : runs) add_run(goodput, run, signs, time);
  goodput.until_ms = time.now();
  return goodput;
}

}  // namespace lrun::launcher
