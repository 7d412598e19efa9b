#pragma once

#include <string>
#include <string_view>

namespace lrun::inline core {

/// `text` with every run of digits as one '#': lines that differ only in a step or a pid become equal. Pure.
std::string without_numbers(std::string_view text);

}  // namespace lrun::inline core
