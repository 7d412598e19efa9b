#pragma once

#include <filesystem>
#include <vector>

namespace lrun::inline core {

/// The entries of a folder in which a person may have meant another name, in no order, and at most a thousand: more say
/// little. Empty where it cannot be read. \param folder  empty: the working directory
std::vector<std::filesystem::directory_entry> first_entries(const std::filesystem::path& folder);

}  // namespace lrun::inline core
