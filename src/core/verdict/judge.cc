// In: the endings of all workers of a run, and where the others were. Out: the worker to blame, and lrun's exit code.
// The launcher calls judge() at the end of each attempt, judge_job() for a job of several nodes.
#include "verdict/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <tuple>
#include <utility>

#include "verdict/collective_name.h"
#include "verdict/exit_code.h"
#include "verdict/has_any.h"

namespace lrun::inline core {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;
/// A rank closes its connections a moment before its process ends: a rank that loses them may even end before it.
constexpr std::int64_t kTeardown = kNanoseconds;

/// The time of the failure in whole seconds: that of the error file, which is earlier than the end of the process.
std::int64_t second_of(const FailureRecord& record) {
  return record.error_time > 0 ? record.error_time : record.wall_ns / kNanoseconds;
}

bool failed_by_itself(const FailureRecord& record) { return !record.success() && !record.stopped_by_lrun(); }

/// A rank that lrun stopped may have failed before that: its error file shows it. An error file about lrun's own signal
/// (torch's SignalException) does not count.
bool can_be_blamed(const FailureRecord& record) {
  if (failed_by_itself(record)) return true;
  return !record.success() && record.error_time > 0 && record.error.find("SignalException") == std::string::npos;
}

/// Seconds are compared only with those of an error file: the wall clock may be set back during a run.
auto order_of_blame(const FailureRecord& record, bool by_second) {
  return std::tuple(is_victim(record.cause), by_second ? second_of(record) : 0, record.stopped_by_lrun(),
                    record.steady_ns, record.rank);
}

auto order_of_death(const FailureRecord& record) { return std::pair(record.steady_ns, record.rank); }

const FailureRecord* first_of(const std::vector<FailureRecord>& records, const auto& counts, const auto& order) {
  const FailureRecord* first = nullptr;
  for (const FailureRecord& record : records) {
    if (counts(record) && (first == nullptr || order(record) < order(*first))) first = &record;
  }
  return first;
}

bool has_account(const FailureRecord& record) { return record.error_time > 0; }

bool ended_well(const FailureRecord& record) { return record.success() && !record.stopped_by_lrun(); }

/// Errors of Python's sockets: the lost connection may be one to a database or a file server, not to a rank.
constexpr std::array kOfOtherConnections{std::string_view("[Errno 104]"), std::string_view("(104, "),
                                         std::string_view("Error 104 ")};

/// True when the error is what a rank gets when another rank is gone.
bool lost_a_rank(const FailureRecord& record) {
  return is_victim(record.cause) && !has_any(record.error, kOfOtherConnections);
}

/// The operation in which it lost its peer; empty: not known. It may have been at its own end, where ranks lose the
/// host of the store.
std::string operation_of(const FailureRecord& victim) {
  std::string collective = collective_in(victim.error);
  for (const std::string& line : victim.evidence) {
    if (collective.empty()) collective = collective_in(line);
  }
  const bool is_of_gloo = victim.error.find("gloo/transport/") != std::string::npos;
  return collective.empty() && is_of_gloo ? "a collective operation" : collective;
}

/// 'rank 0 waited for it in all_reduce at train.py:5'; empty when nothing shows that it waited.
std::string waited_text(const FailureRecord& victim) {
  const std::string operation = operation_of(victim);
  if (operation.empty()) return {};
  std::string text = fmt::format("rank {} waited for it in {}", victim.rank, operation);
  if (!victim.location.empty()) text += " at " + victim.location;
  return text.substr(0, FailureRecord::kMostErrorBytes / 2);
}

FailureRecord blamed_for_its_early_end(FailureRecord record, const std::string& consequence) {
  const std::string collective = collective_in(consequence);
  const bool in_a_step = !collective.empty() && collective != kInitProcessGroup;
  record.cause = Cause::kEndedEarly;
  record.detail = consequence + (in_a_step ? ": did it run fewer steps?" : "");
  return record;
}

/// A lost connection was one to a rank that is gone. A rank that gave up waiting may have waited for one that still
/// runs.
/// \param others_lived  other ranks ran, so `places` should show them
bool may_have_waited_for(const FailureRecord& early, const FailureRecord& victim, const std::vector<RankPlace>& places,
                         bool others_lived) {
  if (!lost_a_rank(victim) || early.steady_ns > victim.steady_ns + kTeardown) return false;
  if (victim.cause != Cause::kWatchdogAbort) return true;
  return places.empty() ? !others_lived : all_wait_for_others(places);
}

/// Reasons to stop a run whose ranks may all have waited for ever.
bool may_have_been_waited_for(RunEnd::Kind kind) {
  constexpr std::array kStops{RunEnd::Kind::kTimedOut, RunEnd::Kind::kHang,        RunEnd::Kind::kStartTimedOut,
                              RunEnd::Kind::kWatched,  RunEnd::Kind::kInterrupted, RunEnd::Kind::kNotice,
                              RunEnd::Kind::kRequested};
  return std::find(kStops.begin(), kStops.end(), kind) != kStops.end();
}

const FailureRecord* find_culprit(const std::vector<FailureRecord>& records) {
  const bool by_second = std::any_of(records.begin(), records.end(), has_account);
  const auto order = [&](const FailureRecord& record) { return order_of_blame(record, by_second); };
  const FailureRecord* const blamed = first_of(records, can_be_blamed, order);
  if (blamed == nullptr || !blamed->stopped_by_lrun()) return blamed;
  // lrun stopped the others because a worker had failed: only an older error file can overrule that failure.
  const FailureRecord* const failed = first_of(records, failed_by_itself, order);
  return failed != nullptr && second_of(*failed) <= second_of(*blamed) ? failed : blamed;
}

void sort_out(Verdict& verdict, const std::vector<FailureRecord>& records, const FailureRecord* culprit) {
  for (const FailureRecord& record : records) {
    if (&record == culprit) continue;
    // A resource manager signals lrun's workers as well as lrun, and a worker may be quicker.
    const bool got_the_signal =
        verdict.end.kind == RunEnd::Kind::kInterrupted && record.ended_by(verdict.end.signal_number);
    const int* const fate = &++(got_the_signal ? verdict.others.stopped_by_signal : verdict.others.of(record));
    if (fate == &verdict.others.lost) verdict.lost.push_back(record.rank);
    if (fate == &verdict.others.killed) verdict.killed.push_back(record.rank);
    if (fate == &verdict.others.stopped_by_signal) verdict.stopped_by_signal.push_back(record.rank);
    if (fate == &verdict.others.failed) verdict.failed_later.push_back(record.rank);
  }
}

}  // namespace

int& Fates::of(const FailureRecord& record) {
  if (record.ending == FailureRecord::Ending::kLost) return lost;
  if (record.stop_signal == SIGKILL) return killed;
  if (record.stopped_by_lrun()) return stopped_by_signal;
  return record.success() ? succeeded : failed;
}

const FailureRecord* Verdict::failure() const {
  if (culprit && !culprit->success()) return &*culprit;
  return overruled ? &*overruled : nullptr;
}

Verdict judge(const RunEnd& end, const std::vector<FailureRecord>& records, const std::vector<RankPlace>& places,
              bool others_lived) {
  Verdict verdict;
  verdict.end = end;
  verdict.places = places;
  const bool blames = end.kind == RunEnd::Kind::kWorkerFailed || end.kind == RunEnd::Kind::kStartFailed;
  const FailureRecord* culprit = blames ? find_culprit(records) : nullptr;
  const FailureRecord* const early = first_of(records, ended_well, order_of_death);
  if (culprit != nullptr) {
    verdict.culprit = *culprit;
    const FailureRecord* const first = first_of(records, failed_by_itself, order_of_death);
    if (first != nullptr && first != culprit) verdict.overruled = *first;
    const std::string waited = waited_text(*culprit);
    const bool lived = others_lived || std::ranges::any_of(records, &FailureRecord::stopped_by_lrun);
    if (early != nullptr && !waited.empty() && may_have_waited_for(*early, *culprit, places, lived)) {
      verdict.overruled = *std::exchange(culprit, early);
      verdict.culprit = blamed_for_its_early_end(*early, waited);
    }
  } else if (early != nullptr && may_have_been_waited_for(end.kind)) {
    verdict.ended_first = *early;
    if (const std::string waiting = describe_waiting(places); !waiting.empty()) {
      culprit = early;
      verdict.culprit = blamed_for_its_early_end(*early, waiting);
    }
  }
  sort_out(verdict, records, culprit);
  decide_code(verdict);
  return verdict;
}

/// Whether seconds are compared depends on all records, so a record that makes them count has to be kept, too.
std::vector<FailureRecord> decisive_records(const std::vector<FailureRecord>& records) {
  std::vector<const FailureRecord*> decisive{find_culprit(records)};
  for (const bool by_second : {true, false}) {
    const auto order = [by_second](const FailureRecord& record) { return order_of_blame(record, by_second); };
    decisive.push_back(first_of(records, can_be_blamed, order));
    decisive.push_back(first_of(records, failed_by_itself, order));
  }
  decisive.push_back(first_of(records, failed_by_itself, order_of_death));
  decisive.push_back(first_of(records, has_account, order_of_death));
  decisive.push_back(first_of(records, ended_well, order_of_death));
  std::vector<FailureRecord> found;
  for (auto one = decisive.begin(); one != decisive.end(); ++one) {
    if (*one != nullptr && std::find(decisive.begin(), one, *one) == one) found.push_back(**one);
  }
  return found;
}

}  // namespace lrun::inline core
