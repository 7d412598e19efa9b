#pragma once

#include <string>
#include <vector>

#include "inspect/stack_fold.h"

namespace lrun {

/// '7 ranks wait in all_reduce; rank 3 is in read() of a pipe, called from load (train.py:40)'.
std::string stacks_in_a_sentence(const std::vector<StackGroup>& groups);

/// What `lrun stack` says: the sentence, then each group with the stacks of its lowest rank, then what could not be
/// had, each reason once.
std::string stack_text(const std::vector<StackSample>& samples);

/// The same for programs: `schema` 1, 'summary', and every rank's own stack.
std::string stack_json(const std::vector<StackSample>& samples);

}  // namespace lrun
