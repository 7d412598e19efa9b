#pragma once

#include <span>
#include <string>
#include <string_view>

#include "verdict/failure_record.h"

namespace lrun::inline core {

/// One known cause and its cure. A rule holds when both of its words are in the same line that the worker printed.
struct HintRule {
  std::string_view name;         ///< for tests and result.json: 'cuda-out-of-memory'
  std::string_view words;        ///< in a line, as it is printed
  std::string_view other_words;  ///< in the same line too; empty: nothing more is asked
  std::string_view hint;         ///< lower case, no full stop: what to do
};

/// All rules, the more special before the more general: the first that holds gives the hint.
std::span<const HintRule> hint_table();

/// What would help; empty when the cause is not known. Pure.
/// \param python          the interpreter that lrun gave the program to; empty: none, or nobody knows which
/// \param asked_for_core  a core file was to be written
std::string hint_for(const FailureRecord& record, std::string_view python = {}, bool asked_for_core = false);

/// The rule whose words are in `line`, or nullptr.
const HintRule* find_hint(std::string_view line);

}  // namespace lrun::inline core
