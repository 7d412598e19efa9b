#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lrun::inline core {

/// At most `most` bytes of `text` and then '…', never cut inside a character. A text that fits stays as it is.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace lrun::inline core
