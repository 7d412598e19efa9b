#include "base/shortened.h"

namespace lrun::inline core {

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;  // not inside a character
  return std::string(text.substr(0, most)) + "…";
}

}  // namespace lrun::inline core
