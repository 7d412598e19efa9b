// Words as a shell quotes them: whatever the bytes, they are words or none; and words quoted again are the same words.
// Input: the text of --wrap.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/shell_words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto words = lrun::split_shell_words(text);
  if (!words) return 0;
  std::string quoted;
  for (const std::string& word : *words) {
    quoted += " '";
    for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
    quoted += "'";
  }
  if (lrun::split_shell_words(quoted) != words) std::abort();
  return 0;
}
