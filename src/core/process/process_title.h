#pragma once

#include <string_view>

namespace lrun::inline core {

/// main()'s arguments, whose memory is what others see as this process's command line. To be called first of all; their
/// texts may be gone after set_process_title().
void remember_command_line(int count, char** arguments);

/// What `ps` shows and `pkill -f` matches from now on, cut to the length of the arguments that were given. Does nothing
/// when none were remembered.
void set_process_title(std::string_view title);

}  // namespace lrun::inline core
