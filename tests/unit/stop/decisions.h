#pragma once

#include "stop/policy.h"

namespace lrun {

using Phase = SupervisionState::Phase;
using EndKind = RunEnd::Kind;

inline SupervisionState running(int workers, Duration grace = Duration(30'000)) {
  SupervisionState state;
  state.running = workers;
  state.grace = grace;
  return state;
}

template <class T>
const T* find(const Decision& decision) {
  for (const Action& action : decision.actions) {
    if (const T* found = std::get_if<T>(&action)) return found;
  }
  return nullptr;
}

inline SupervisionState settling_run(int workers, Duration settle, Duration for_victims) {
  SupervisionState state = running(workers);
  state.settle = settle;
  state.settle_for_victims = for_victims;
  return state;
}

inline constexpr WorkerEnded kVictim{false, true};
inline constexpr WorkerEnded kOwnError{false, false};

}  // namespace lrun
