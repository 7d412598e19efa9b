#include "base/kernel_text.h"

#include <charconv>
#include <system_error>

#include "base/split.h"

namespace lrun::inline core {

std::optional<std::string> cgroup_path(std::string_view proc_cgroup, std::string_view controller) {
  while (!proc_cgroup.empty()) {
    std::string_view line = cut(proc_cgroup, '\n');
    cut(line, ':');  // the hierarchy's number
    const std::string_view controllers = cut(line, ':');
    const bool found = controller.empty() ? controllers.empty() && !line.empty() : has_word(controllers, controller);
    if (found) return std::string(line);
  }
  return std::nullopt;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (cut(list, ',') == word) return true;
  }
  return false;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool only_number_of(std::string_view lines, std::string_view name, std::uint64_t number) {
  while (!lines.empty()) {
    std::string_view line = cut(lines, '\n');
    if (cut(line, '\t') != name || line.empty()) continue;
    while (!line.empty()) {
      if (number_in(cut(line, '\t')) != number) return false;
    }
    return true;
  }
  return false;
}

std::optional<std::uint64_t> counter_named(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    const std::string_view line = cut(lines, '\n');
    if (!line.starts_with(name)) continue;
    const std::size_t blanks = line.substr(name.size()).find_first_not_of(" \t");
    if (blanks != 0 && blanks != std::string_view::npos) return number_in(line.substr(name.size() + blanks));
  }
  return std::nullopt;
}

}  // namespace lrun::inline core
