#pragma once

#include "base/clock.h"
#include "base/duration.h"

namespace lrun::test {

/// How long a test waits for an event that must come, on a machine that has other work.
inline constexpr Duration kPatience(60'000);
/// The same for the answer of one server.
inline constexpr Duration kAnswerPatience(30'000);

/// The deadline of a call that must succeed.
inline SteadyTime soon() { return steady_now() + Duration(20'000); }

}  // namespace lrun::test
