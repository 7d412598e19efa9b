#include "run/worker_starter.h"

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace lrun::launcher {

void WorkerStarter::set_commands(GroupCommand common, std::vector<WorkerCommand> commands) {
  common_ = std::move(common);
  commands_ = std::move(commands);
}

std::optional<StartFailure> WorkerStarter::start_some() {
  constexpr Duration kMoment(20);
  constexpr std::size_t kFewest = 64;  // on a slow machine the start as a whole must not take for ever
  const SteadyTime end = steady_now() + kMoment;
  const std::size_t fewest = common_.spawner ? 1 : kFewest;  // forks of a large process take a while
  const std::size_t before = started_;
  while (left() > 0 && (started_ < before + fewest || steady_now() < end)) {
    if (std::optional<StartFailure> failure = start_next()) return failure;
  }
  return std::nullopt;
}

/// A few at a time: the descriptors that their start needs are open together.
std::optional<StartFailure> WorkerStarter::start_next() {
  constexpr std::size_t kAtATime = 8;
  const std::size_t at_a_time = common_.spawner ? common_.spawner->at_a_time() : kAtATime;
  const std::span next = std::span(commands_).subspan(started_, std::min(at_a_time, left()));
  try {
    output_.prepare(next, started_);
  } catch (const std::system_error& error) {
    group_.end();
    return StartFailure{.local_rank = next.front().local_rank, .error_number = error.code().value(), .refusal = error};
  }
  auto failure = group_.start(loop_, common_, next, defaults_);
  output_.close_workers_ends();
  started_ = group_.workers().size();
  return failure;
}

void WorkerStarter::end() {
  commands_.clear();
  started_ = 0;
}

}  // namespace lrun::launcher
