#include "base/folder_entries.h"

#include <cstddef>
#include <system_error>

namespace lrun::inline core {

std::vector<std::filesystem::directory_entry> first_entries(const std::filesystem::path& folder) {
  constexpr std::size_t kMost = 1000;
  std::vector<std::filesystem::directory_entry> entries;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? std::filesystem::path(".") : folder, error);
  for (; !error && entry != std::filesystem::directory_iterator() && entries.size() < kMost; entry.increment(error)) {
    entries.push_back(*entry);
  }
  return entries;
}

}  // namespace lrun::inline core
