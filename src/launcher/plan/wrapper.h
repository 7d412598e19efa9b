#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrun::launcher {

/// A command in front of the program, for all ranks or for some: a profiler, numactl, a container.
struct Wrapper {
  using Ranks = std::vector<std::pair<int, int>>;  ///< first and last of each range

  std::vector<std::string> words;  ///< not empty; with macros
  Ranks ranks;                     ///< empty: all
  std::string origin;              ///< '--wrap', '--wrap@0', 'lrun.toml:3: wrap'

  bool operator==(const Wrapper&) const = default;
};

/// Reads '0', '0,2' or '0,4-7'. Empty for any other text.
std::optional<Wrapper::Ranks> parse_ranks(std::string_view text);

/// One of the ranges has the rank.
bool has_rank(const Wrapper::Ranks& ranks, int rank);

/// The wrapper of a rank: the last one that names the rank, else the last one for all ranks, else null.
const Wrapper* wrapper_of(const std::vector<Wrapper>& wrappers, int rank);

/// A wrapper runs its program in a container, as far as its words tell: what lies there is not known here.
bool enters_container(const std::vector<Wrapper>& wrappers);

/// \throws UserError  one names a rank that the run does not have
void check_wrappers(const std::vector<Wrapper>& wrappers, int world_size);

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
