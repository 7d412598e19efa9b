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

/// Why a folder of this user's alone cannot be used, or made, at this path: "'/tmp/a' belongs to another user". Empty:
/// it can. Nothing is made.
std::string problem_of_private_folder(const std::string& path);

}  // namespace lrun::launcher
