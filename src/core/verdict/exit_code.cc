#include "verdict/exit_code.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "process/exit_codes.h"
#include "verdict/judge.h"

namespace lrun::inline core {
namespace {

int exit_code_of(const FailureRecord& record) {
  switch (record.ending) {
    case FailureRecord::Ending::kExited:
      return record.value;
    case FailureRecord::Ending::kSignaled:
      return exit_code_of_signal(record.value);
    case FailureRecord::Ending::kLost:
      return 1;
    case FailureRecord::Ending::kExecFailed:
      break;
  }
  if (record.value == ENOENT || record.value == ENOTDIR) return kExitNotFound;
  constexpr std::array kOfTheFile{EACCES, EISDIR, ENOEXEC, EPERM, ELOOP, ENAMETOOLONG, ETXTBSY, ELIBBAD, E2BIG};
  const bool found = std::find(kOfTheFile.begin(), kOfTheFile.end(), record.value) != kOfTheFile.end();
  return found ? kExitNotExecutable : kExitRefused;
}

/// A culprit that lrun had stopped ended by lrun's signal: the exit code is then that of the failure that lrun saw
/// first.
const FailureRecord& blamed_end(const Verdict& verdict) {
  return verdict.culprit->stopped_by_lrun() && verdict.overruled ? *verdict.overruled : *verdict.failure();
}

}  // namespace

void decide_code(Verdict& verdict) {
  switch (verdict.end.kind) {
    case RunEnd::Kind::kSucceeded:
      break;
    case RunEnd::Kind::kWorkerFailed:
    case RunEnd::Kind::kStartFailed:
      verdict.exit_code = verdict.culprit ? exit_code_of(blamed_end(verdict)) : kExitRefused;
      break;
    case RunEnd::Kind::kInterrupted:
      verdict.die_of_signal = verdict.end.signal_number;
      break;
    case RunEnd::Kind::kConsoleClosed:
      verdict.die_of_signal = SIGPIPE;
      break;
    case RunEnd::Kind::kNotice:  // which only comes earlier than the signal
    case RunEnd::Kind::kRequested:
      verdict.die_of_signal = SIGTERM;
      break;
    case RunEnd::Kind::kTimedOut:
    case RunEnd::Kind::kHang:
    case RunEnd::Kind::kStartTimedOut:
    case RunEnd::Kind::kWatched:
      verdict.exit_code = kExitTimedOut;
      break;
    case RunEnd::Kind::kGuardDied:
    case RunEnd::Kind::kHeadLost:
    case RunEnd::Kind::kLauncherFailed:
    case RunEnd::Kind::kNodeLost:
    case RunEnd::Kind::kNodeJoined:
      verdict.exit_code = kExitRefused;
      break;
  }
  if (verdict.die_of_signal != 0) verdict.exit_code = exit_code_of_signal(verdict.die_of_signal);
  if (!verdict.end.is_ours()) verdict.die_of_signal = 0;  // another node's lrun got the signal
}

}  // namespace lrun::inline core
