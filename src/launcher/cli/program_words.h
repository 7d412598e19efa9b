#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/program_facts.h"
#include "plan/launch_request.h"

namespace lrun::launcher {

/// Gives the text of a file, relative to the directory where workers start; empty when it cannot be read. The search
/// itself is pure.
using ReadProgram = std::function<std::optional<std::string>(const std::string& path)>;

/// Reads programs from the disk, up to 64 MiB. \param folder  where workers start; empty: the working directory
ReadProgram program_reader(const std::string& folder);

/// The file with PROGRAM's own words.
struct ProgramText {
  std::string file;  ///< empty: nothing can be searched, or it may be a script that passes its arguments on
  bool is_python = false;
};
ProgramText text_of(const LaunchRequest& request, const ProgramFacts& program);

/// Whether the file can be read and does not have `word` as a whole word of letters, digits and '_'.
bool lacks_word(const std::string& file, std::string_view word, const ReadProgram& read);

/// The same for a Python script and all modules that it imports from its own directory, directly or not. False also
/// when one of them uses a library that makes options from code elsewhere (HfArgumentParser, hydra, fire and the like),
/// and for more than a hundred files.
bool script_lacks_word(const std::string& script, std::string_view word, const ReadProgram& read);

/// Whether a Python script with this text starts the processes of a training run itself, with torch's 'mp.spawn', and
/// takes no rank from a launcher.
bool spawns_ranks(const std::string& text);

/// Whether a Python script with this text gives its only init_process_group() a number as rank, or 1 as world_size, and
/// takes no rank from a launcher: all ranks would be the same one.
bool fixes_rank(const std::string& text);

}  // namespace lrun::launcher
