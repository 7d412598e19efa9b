#include "verdict/run_end.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lrun::inline core {
namespace {

using Kind = RunEnd::Kind;

constexpr std::array<std::pair<Kind, std::string_view>, 16> kEndNames{{
    {Kind::kSucceeded, "succeeded"},
    {Kind::kWorkerFailed, "worker_failed"},
    {Kind::kStartFailed, "start_failed"},
    {Kind::kInterrupted, "interrupted"},
    {Kind::kNotice, "notice"},
    {Kind::kConsoleClosed, "console_closed"},
    {Kind::kRequested, "requested"},
    {Kind::kGuardDied, "guard_died"},
    {Kind::kHeadLost, "head_lost"},
    {Kind::kLauncherFailed, "launcher_failed"},
    {Kind::kTimedOut, "timed_out"},
    {Kind::kHang, "hang"},
    {Kind::kStartTimedOut, "start_timed_out"},
    {Kind::kWatched, "watched"},
    {Kind::kNodeLost, "node_lost"},
    {Kind::kNodeJoined, "node_joined"},
}};

}  // namespace

std::string_view name_of(RunEnd::Kind kind) {
  const auto* const found =
      std::find_if(kEndNames.begin(), kEndNames.end(), [&](const auto& entry) { return entry.first == kind; });
  return found == kEndNames.end() ? kEndNames.front().second : found->second;
}

std::optional<RunEnd::Kind> run_end_named(std::string_view name) {
  const auto* const found =
      std::find_if(kEndNames.begin(), kEndNames.end(), [&](const auto& entry) { return entry.second == name; });
  return found == kEndNames.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace lrun::inline core
