#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/checkpoint/format.h"

namespace lrun::detail {

/// Replaces `path` by a checkpoint file in one step: a reader finds the old file or the new one, never a part of it, at
/// any time and after a power cut. Size and checksum of `content` are put into the header. \return the header that was
/// written. \throws std::system_error  the disk is full, the folder is missing, …; names the file. Nothing is left
/// behind.
CheckpointHeader write_checkpoint_file(const std::filesystem::path& path, CheckpointHeader header,
                                       std::string_view content);

/// The file that a checkpoint at `path` replaces: `path`, or the target of that symbolic link. A device or a pipe must
/// not be replaced by a file. \throws std::system_error  it is such a thing, or the link has no target.
std::filesystem::path replaceable_file(const std::filesystem::path& path);

struct CheckpointFile {
  CheckpointHeader header;
  std::string content;
};

/// A file that write_checkpoint_file() wrote; nothing when there is none.
/// \throws lrun::CheckpointError  it is truncated, damaged, something else or unreadable; names it and the reason.
std::optional<CheckpointFile> read_checkpoint_file(const std::filesystem::path& path);

/// Reads the whole file and checks it, in little memory.
/// \return the header; nothing when there is no such file.
/// \throws lrun::CheckpointError  as read_checkpoint_file().
std::optional<CheckpointHeader> check_checkpoint_file(const std::filesystem::path& path);

/// Whether the file exists and its header fits its size. The content is not read.
bool looks_like_checkpoint(const std::filesystem::path& path) noexcept;

/// Makes changes in a folder (renamed or removed files) survive a power cut.
/// \throws std::system_error  names the folder.
void sync_folder(const std::filesystem::path& folder);

}  // namespace lrun::detail
