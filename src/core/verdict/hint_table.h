#pragma once

#include <span>
#include <string>
#include <string_view>

#include "verdict/failure_record.h"

namespace lrun::inline core {

/// A known cause and its fix. A rule applies when one line that the worker printed contains both of its words.
struct HintRule {
  std::string_view name;  ///< for tests and result.json: 'cuda-out-of-memory'
  std::string_view words;
  std::string_view other_words;  ///< in the same line; empty: not needed
  std::string_view hint;         ///< lower case, no full stop: what to do
};

/// All rules, special ones before general ones: the first rule that applies gives the hint.
std::span<const HintRule> hint_table();

/// How to fix the failure, one line; empty when the cause is not known. Pure.
/// \param python          the interpreter that lrun started the program with; empty: none, or not known
/// \param asked_for_core  the user asked for a core file
std::string hint_for(const FailureRecord& record, std::string_view python = {}, bool asked_for_core = false);

/// The first rule that applies to `line`, or nullptr.
const HintRule* find_hint(std::string_view line);

}  // namespace lrun::inline core
