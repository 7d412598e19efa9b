#pragma once

#include <string>
#include <vector>

#include "plan/rank_ranges.h"

namespace lrun::launcher {

/// A command in front of the program, for all ranks or for some: a profiler, numactl, a container.
struct Wrapper {
  std::vector<std::string> words;  ///< not empty; with macros
  RankRanges ranks;                ///< empty: all
  std::string origin;              ///< '--wrap', '--wrap@0', 'lrun.toml:3: wrap'

  bool operator==(const Wrapper&) const = default;
};

/// The wrapper of a rank: the last one that names the rank, else the last one for all ranks, else null.
const Wrapper* wrapper_of(const std::vector<Wrapper>& wrappers, int rank);

/// A wrapper runs its program in a container, as far as its words tell: what lies there is not known here.
bool enters_container(const std::vector<Wrapper>& wrappers);

/// The values of a wrapper's macros.
struct WrapperFacts {
  int rank = 0;
  int local_rank = 0;
  int attempt = 0;
  std::string host;
};

/// The words with '%r' as the rank, '%l' the local rank, '%a' the attempt, '%h' the host and '%%' as '%'. Any other
/// '%' stays, as it may belong to the wrapper's own arguments.
std::vector<std::string> expand_wrapper(const std::vector<std::string>& words, const WrapperFacts& facts);

}  // namespace lrun::launcher
