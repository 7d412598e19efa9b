#pragma once

#include <string>
#include <string_view>

namespace lrun::inline core {

/// Every run of digits as one '#': what a program says again and again, whichever step or pid it names. Pure.
std::string without_numbers(std::string_view text);

}  // namespace lrun::inline core
