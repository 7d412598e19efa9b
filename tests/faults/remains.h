#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "faults/run_plan.h"

namespace lrun::test {

/// The content of result.json.
struct Result {
  std::string reason;  ///< empty: there is no such file
  int exit_code = -1;
  int culprit = -1;
  std::string ending;
  int value = 0;
};

/// Of the one run in this state folder.
Result read_result(const std::filesystem::path& state);

/// True while an actor or anything it started lives, also one that hides its environment.
bool anybody_lives(const std::filesystem::path& folder);

/// Remains of a run that should not be there: in its own folder, in TMPDIR and in the state folder. Also the complaints
/// of the actors.
std::vector<std::string> problems_in(const std::filesystem::path& folder, const std::filesystem::path& state,
                                     const RunPlan& plan);

}  // namespace lrun::test
