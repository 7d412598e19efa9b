#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

/// The line with '***' in place of what looks like a secret: the value behind a name such as '--api-key', 'HF_TOKEN=',
/// '"password":' or 'Bearer', a word of a well-known form ('ghp_…', 'hf_…', 'sk-…'), and user and password of a URL.
/// Secrets of other forms stay. Pure.
std::string without_secrets(std::string_view line);
/// The same of a command line, where a value is a whole word or its rest. Pure.
std::vector<std::string> without_secrets(std::vector<std::string> argv);

}  // namespace lrun::launcher
