#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lrun::inline core {

/// Remembers main()'s arguments, whose memory other processes see as this process's command line. To be called first of
/// all; their texts may be gone after set_process_title().
void remember_command_line(int count, char** arguments);

/// A copy of these arguments, as they were; empty where none were remembered.
const std::vector<std::string>& remembered_command_line();

/// Sets the title that `ps` shows and `pkill -f` matches, cut to the length of the arguments. Does nothing where none
/// were remembered.
void set_process_title(std::string_view title);

}  // namespace lrun::inline core
