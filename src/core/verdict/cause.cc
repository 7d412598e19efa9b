#include "verdict/cause.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lrun::inline core {
namespace {

constexpr std::array<std::pair<Cause, std::string_view>, 13> kCauseNames{{
    {Cause::kSucceeded, "succeeded"},
    {Cause::kEndedEarly, "ended_early"},
    {Cause::kOwnError, "own_error"},
    {Cause::kFatalSignal, "fatal_signal"},
    {Cause::kOutOfMemory, "out_of_memory"},
    {Cause::kProbablyOutOfMemory, "probably_out_of_memory"},
    {Cause::kSharedMemoryFull, "shared_memory_full"},
    {Cause::kCpuTimeLimit, "cpu_time_limit"},
    {Cause::kWatchdogAbort, "watchdog_abort"},
    {Cause::kPeerLost, "peer_lost"},
    {Cause::kStoppedByLrun, "stopped_by_lrun"},
    {Cause::kExecFailed, "exec_failed"},
    {Cause::kLost, "lost"},
}};

}  // namespace

std::string_view name_of(Cause cause) {
  const auto* const found =
      std::find_if(kCauseNames.begin(), kCauseNames.end(), [&](auto& entry) { return entry.first == cause; });
  return found == kCauseNames.end() ? std::string_view("lost") : found->second;
}

std::optional<Cause> cause_named(std::string_view name) {
  const auto* const found =
      std::find_if(kCauseNames.begin(), kCauseNames.end(), [&](auto& entry) { return entry.second == name; });
  return found == kCauseNames.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace lrun::inline core
