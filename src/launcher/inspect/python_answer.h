#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// The words that make the Python at `path` print what it is, which torch it has, and where that finds NCCL. Torch is
/// not imported, which takes seconds: its version.py and the files that pip keeps beside it are read. Nothing of the
/// working folder is imported, and no file is written.
std::vector<std::string> python_question(const std::string& path);

/// Reads the answer: JSON in the last line, as sitecustomize may print, too. Any bytes are accepted. Of the facts,
/// path, version and torch are set. Empty where `output` is no answer. Pure.
std::optional<PythonFacts> parse_python_answer(std::string_view output);

}  // namespace lrun::launcher
