#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrun::launcher {

/// A command that is put in front of the program, for all ranks or for some: a profiler, numactl, a container.
struct Wrapper {
  using Ranks = std::vector<std::pair<int, int>>;  ///< first and last of each range

  std::vector<std::string> words;  ///< not empty; with macros
  Ranks ranks;                     ///< empty: all
  std::string origin;              ///< '--wrap', '--wrap@0', 'lrun.toml:3: wrap'

  bool operator==(const Wrapper&) const = default;
};

/// Reads '0', '0,2' or '0,4-7'. Empty when it is none of these.
std::optional<Wrapper::Ranks> parse_ranks(std::string_view text);

/// The wrapper of a rank: of those that name it the last, else of those for all the last, else nullptr.
const Wrapper* wrapper_of(const std::vector<Wrapper>& wrappers, int rank);

/// \throws UserError  one names a rank that the run does not have.
void check_wrappers(const std::vector<Wrapper>& wrappers, int world_size);

/// What the macros of a wrapper stand for.
struct WrapperFacts {
  int rank = 0;
  int local_rank = 0;
  int attempt = 0;
  std::string host;
};

/// The words with '%r' as the rank, '%l' the local rank, '%a' the attempt, '%h' the host and '%%' as '%'. Any other
/// '%' stays as it is: it may be one of the wrapper's own.
std::vector<std::string> expand_wrapper(const std::vector<std::string>& words, const WrapperFacts& facts);

}  // namespace lrun::launcher
