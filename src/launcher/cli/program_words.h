#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Gives the text of a file, relative to the directory where workers start; empty when it cannot be read. The search
/// itself is pure.
using ReadProgram = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads programs from the disk, up to 64 MiB. \param folder  where workers start; empty: the working directory
ReadProgram program_reader(const std::string& folder);

/// Whether the file can be read and does not have `word` as a whole word of letters, digits and '_'.
bool lacks_word(const std::string& file, std::string_view word, const ReadProgram& read);

/// The same for a Python script and all modules that it imports from its own directory, directly or not. False also
/// when one of them uses a library that makes options from code elsewhere (HfArgumentParser, hydra, fire and the like),
/// and for more than a hundred files.
bool script_lacks_word(const std::string& script, std::string_view word, const ReadProgram& read);

}  // namespace lrun::launcher
