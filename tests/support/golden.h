#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/lrun_process.h"

namespace lrun::test {

/// Compares `text` with tests/golden/`name`; with LRUN_UPDATE_GOLDEN=1 in the environment it writes it anew.
void expect_golden(const std::string& name, const std::string& text);

/// The output of lrun, without the parts that differ from run to run and from machine to machine: pids, host name,
/// times, the name of the run and its folders, addresses. `names` are texts and their replacements.
std::string without_particulars(std::string text, const LrunProcess& lrun,
                                const std::vector<std::pair<std::string, std::string>>& names = {});

/// How lrun ended and all it printed, stderr first, in a form for expect_golden().
std::string transcript(LrunProcess& lrun, const std::vector<std::pair<std::string, std::string>>& names = {});

}  // namespace lrun::test
