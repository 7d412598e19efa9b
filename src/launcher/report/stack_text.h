#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/stack_fold.h"
#include "verdict/rank_places.h"

namespace lrun::launcher {

/// '7 ranks wait in all_reduce; rank 3 is in read() of a pipe, called from load (train.py:40)'.
std::string stacks_in_a_sentence(const std::vector<StackGroup>& groups);

/// The groups as places of ranks, safe for a terminal and short; those that have ended are left out.
std::vector<RankPlace> places_of(const std::vector<StackGroup>& groups);

/// The text of `lrun stack`: the sentence, then each group with the stacks of its lowest rank, then each reason why a
/// stack is missing, once.
std::string stack_text(const std::vector<StackSample>& samples);

/// The same for programs: `schema` 1, 'summary', and every rank's own stack.
std::string stack_json(const std::vector<StackSample>& samples);

/// The stacks of the ranks of one launcher of a job.
struct LauncherStacks {
  std::string host;
  pid_t pid = 0;  ///< of lrun there
  int ranks = 0;  ///< that it has; there may be fewer samples than that
  std::vector<StackSample> samples = {};
  std::string problem = {};             ///< why it has no samples; empty: it has
  std::int64_t still_ms = 0;            ///< of an answer to kStandstillWords: so long have its ranks stood still
  std::vector<int> outside_store = {};  ///< the same: those that are not connected to the run's store

  bool operator==(const LauncherStacks&) const = default;
};
/// One line of JSON of at most `most` bytes: other threads and outer calls are left out first, and then
/// ranks.
std::string to_json_within(LauncherStacks stacks, std::size_t most);
/// Reads such a line, as stack_samples_from_json() does; each sample gets the host.
std::optional<LauncherStacks> launcher_stacks_from_json(std::string_view text);

/// Reads the text of stack_json(), of 4096 ranks at most. Empty for text that is not JSON, lacks a field, or holds a
/// value out of its range.
std::optional<std::vector<StackSample>> stack_samples_from_json(std::string_view text);

}  // namespace lrun::launcher
