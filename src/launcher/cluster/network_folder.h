#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The name of a network file system by its number, statfs::f_type; empty: any other. FUSE counts: most of what a
/// cluster mounts with it is on other machines.
std::string_view network_file_system(std::uint64_t type);

/// The same for a folder, which need not be there yet: the innermost one above it that is there decides. Waits for as
/// long as the file system does.
std::string_view network_file_system_of(const std::string& folder);

}  // namespace lrun::launcher
