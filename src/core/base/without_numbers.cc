#include "base/without_numbers.h"

namespace lrun::inline core {

std::string without_numbers(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    const bool digit = letter >= '0' && letter <= '9';
    if (!digit) {
      result += letter;
    } else if (result.empty() || result.back() != '#') {
      result += '#';
    }
  }
  return result;
}

}  // namespace lrun::inline core
