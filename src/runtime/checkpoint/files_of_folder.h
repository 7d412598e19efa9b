#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/checkpoint/checkpoint_name.h"

namespace lrun::detail {

/// The whole checkpoints and manifests of a folder, the latest step first; not opened. Empty when there is no folder.
/// \throws std::system_error  the folder cannot be read.
std::vector<CheckpointName> list_checkpoints(const std::filesystem::path& folder);

/// Removes the files from `folder` that the complete checkpoint `saved` made superfluous: all but the `keep` latest
/// good ones up to its step (0: none; good by header and size) and damaged ones among them, parts of checkpoints up to
/// it that were never completed, and partial files of a killed process. Later steps and files of other programs stay.
/// \param parts  of `saved`; 0 when it is whole.
/// \throws std::system_error  the folder cannot be read. A file that cannot be removed stays.
void prune_checkpoints(const std::filesystem::path& folder, const CheckpointName& saved, std::uint32_t parts,
                       std::size_t keep);

/// Removes the checkpoints of steps that are not in [first, last] from `folder`, and partial files. What cannot be
/// removed stays. \throws std::system_error  the folder cannot be read.
void remove_outside(const std::filesystem::path& folder, std::uint64_t first, std::uint64_t last);

}  // namespace lrun::detail
