#pragma once

#include <string_view>

namespace lrun::launcher {

/// The file of completions/ for this shell: 'bash', 'zsh' or 'fish'. Empty for any other.
std::string_view completion_script(std::string_view shell);

}  // namespace lrun::launcher
