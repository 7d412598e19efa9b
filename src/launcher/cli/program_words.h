#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// Gives the text of a file from the folder where workers start; empty when it cannot be read. So that looking for
/// words is pure otherwise.
using ReadProgram = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads programs from the disk, up to 64 MiB. \param folder  where workers start; empty: the working directory
ReadProgram program_reader(const std::string& folder);

/// The file can be read, and `word` is nowhere in it, letters, digits and '_' before or behind it aside.
bool lacks_word(const std::string& file, std::string_view word, const ReadProgram& read);

/// The same of a Python script and of all modules that it imports from its own folder, and theirs: none of them has
/// `word`, and none uses a library that makes options out of code elsewhere (HfArgumentParser, hydra, fire and the
/// like). False of more than a hundred files, too.
bool script_lacks_word(const std::string& script, std::string_view word, const ReadProgram& read);

}  // namespace lrun::launcher
