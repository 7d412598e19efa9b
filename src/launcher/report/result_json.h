#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verdict/judge.h"

namespace lrun::launcher {

/// The result of a run for programs: `schema` 1, exit code, reason, culprit, who was overruled as a victim
/// (or null), a hint (or an empty text) and every ending. One JSON object.
/// \param text  that was printed at the end, without colour
/// \param hint  as it stands in the text; may be empty
std::string result_json(const std::string& run_id, const Verdict& verdict, const std::vector<FailureRecord>& records,
                        const std::string& text, const std::string& hint);

/// The last hint in a text without colour; may be empty. Pure.
std::string hint_in(std::string_view text);

/// The worker to blame, from result.json. Empty: it names none, or is of another version.
std::optional<FailureRecord> culprit_in(std::string_view result_json);

}  // namespace lrun::launcher
