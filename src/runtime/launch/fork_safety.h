#pragma once

#include <string>
#include <vector>

namespace lrun::detail {

/// Actions in a process that break its forks.
struct ForkFacts {
  std::vector<std::string> open_files;  ///< what its descriptors are open on
  int new_threads = 0;                  ///< that were started since liblrun was loaded
  bool backward_works = true;           ///< in a fork: autograd refuses it when it ran here

  bool operator==(const ForkFacts&) const = default;
};

/// Why ranks cannot be forked from such a process, as the end of a sentence; empty: they can. Pure.
std::string why_not_fork(const ForkFacts& facts);

/// Of this process. Runs a small backward() in a fork of it, which takes milliseconds.
ForkFacts fork_facts();

}  // namespace lrun::detail
