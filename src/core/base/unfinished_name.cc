#include "base/unfinished_name.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/split.h"

namespace lrun::inline core {

bool is_unfinished_name(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kEndings{".new",        ".temp", ".part", ".partial",
                                                            ".incomplete", ".lock", ".swp",  "~"};
  const std::string lower = lower_case(std::string(name));
  return lower.find("tmp") != std::string::npos ||
         std::any_of(kEndings.begin(), kEndings.end(), [&](auto ending) { return lower.ends_with(ending); });
}

}  // namespace lrun::inline core
