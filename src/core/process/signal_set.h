#pragma once

#include <csignal>
#include <initializer_list>
#include <vector>

namespace lrun::inline core {

/// \param numbers  any range of signals, also in braces
template <class Numbers = std::initializer_list<int>>
sigset_t signal_set(const Numbers& numbers) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : numbers) ::sigaddset(&set, number);
  return set;
}

/// Async-signal-safe.
bool is_ignored(int signal_number);

/// Sorts the signals, each once, and leaves out those that this process was started to ignore (nohup).
std::vector<int> without_ignored(std::vector<int> numbers);

/// Blocks these signals, but for those that this process was started to ignore. \return the blocked ones, sorted.
std::vector<int> block_unless_ignored(std::vector<int> numbers);

/// Dies of the signal as if it had never been handled, so that a shell, make or Slurm sees the truth.
[[noreturn]] void die_of(int signal_number);

}  // namespace lrun::inline core
