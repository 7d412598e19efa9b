#pragma once

namespace lrun::inline core {

struct Verdict;

/// Decides how lrun ends: sets exit_code and die_of_signal of `verdict` by its end and by the worker to blame. Pure.
void decide_code(Verdict& verdict);

}  // namespace lrun::inline core
