#pragma once

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

/// Reads the text of stack_json(), of 4096 ranks at most. Empty for text that is not JSON, lacks a field, or holds a
/// value out of its range.
std::optional<std::vector<StackSample>> stack_samples_from_json(std::string_view text);

}  // namespace lrun::launcher
