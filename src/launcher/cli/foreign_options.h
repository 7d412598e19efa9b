#pragma once

#include <string>
#include <string_view>

namespace lrun::launcher {

/// "did you mean '--devices'?" for an option, or a line that begins with 'lrun '; any other text is the whole hint.
std::string hint_to_type(std::string_view ours);

/// The hint about an option that other launchers have and lrun has not: "did you mean '--devices'?" for
/// '--gpus', "did you mean 'lrun status'?" for '--status'. Empty: no such option is known. \param option  as typed,
/// without a value
std::string hint_about_foreign_option(const std::string& option);

}  // namespace lrun::launcher
