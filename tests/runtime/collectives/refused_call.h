#pragma once

#include <optional>

namespace lrun::detail::testing {

/// An argument of a system call, and the value of its lower half.
struct CallArgument {
  unsigned index = 0;
  unsigned value = 0;
};

/// From now on the kernel refuses this process the system call with `error`, as one does that does not know it; with
/// `argument` only calls that have it. Children inherit that: to be called in a child.
/// \throws std::runtime_error  "no seccomp" where this machine does not let us.
void refuse_call(long number, int error, std::optional<CallArgument> argument = std::nullopt);

}  // namespace lrun::detail::testing
