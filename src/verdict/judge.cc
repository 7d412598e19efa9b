#include "verdict/judge.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace lrun {
namespace {

const FailureRecord* find_culprit(const std::vector<FailureRecord>& records) {
  const FailureRecord* first = nullptr;
  for (const FailureRecord& record : records) {
    if (record.success() || record.stopped_by_lrun()) continue;
    const bool earlier = first == nullptr || record.steady_ns < first->steady_ns ||
                         (record.steady_ns == first->steady_ns && record.rank < first->rank);
    if (earlier) first = &record;
  }
  return first;
}

int exit_code_of(const FailureRecord& record) {
  switch (record.ending) {
    case FailureRecord::Ending::kExited:
      return record.value;
    case FailureRecord::Ending::kSignaled:
      return 128 + record.value;
    case FailureRecord::Ending::kExecFailed:
      break;
  }
  if (record.value == ENOENT || record.value == ENOTDIR) return kExitNotFound;
  if (record.value == EACCES || record.value == EISDIR || record.value == ENOEXEC || record.value == EPERM)
    return kExitNotExecutable;
  return kExitRefused;
}

void sort_out(Verdict& verdict, const std::vector<FailureRecord>& records, const FailureRecord* culprit) {
  for (const FailureRecord& record : records) {
    if (&record == culprit) continue;
    if (record.stop_signal == SIGKILL) {
      verdict.killed.push_back(record.rank);
    } else if (record.stopped_by_lrun()) {
      verdict.stopped_by_signal.push_back(record.rank);
    } else if (record.success()) {
      ++verdict.succeeded;
    } else {
      verdict.failed_later.push_back(record.rank);
    }
  }
}

void decide_code(Verdict& verdict) {
  switch (verdict.end.kind) {
    case RunEnd::Kind::kSucceeded:
      break;
    case RunEnd::Kind::kWorkerFailed:
    case RunEnd::Kind::kStartFailed:
      verdict.exit_code = verdict.culprit ? exit_code_of(*verdict.culprit) : kExitRefused;
      break;
    case RunEnd::Kind::kInterrupted:
      verdict.die_of_signal = verdict.end.signal_number;
      break;
    case RunEnd::Kind::kConsoleClosed:
      verdict.die_of_signal = SIGPIPE;
      break;
    case RunEnd::Kind::kRequested:
      verdict.die_of_signal = SIGTERM;
      break;
    case RunEnd::Kind::kGuardDied:
      verdict.exit_code = kExitRefused;
      break;
  }
  if (verdict.die_of_signal != 0) verdict.exit_code = 128 + verdict.die_of_signal;
}

}  // namespace

Verdict judge(RunEnd end, const std::vector<FailureRecord>& records) {
  Verdict verdict;
  verdict.end = end;
  const bool blames = end.kind == RunEnd::Kind::kWorkerFailed || end.kind == RunEnd::Kind::kStartFailed;
  const FailureRecord* culprit = blames ? find_culprit(records) : nullptr;
  if (culprit != nullptr) verdict.culprit = *culprit;
  sort_out(verdict, records, culprit);
  decide_code(verdict);
  return verdict;
}

}  // namespace lrun
