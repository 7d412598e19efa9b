#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/checkpoint/format.h"

namespace lrun::detail {

/// Replaces `path` by a checkpoint file in one step: whoever opens it, at any time and after a power cut, finds what
/// was there or the new file, never a part. Size and checksum of `content` are put into the header. \return the header
/// that was written. \throws std::system_error  the disk is full, the folder is missing, …; names the file. Nothing is
/// left behind.
CheckpointHeader write_checkpoint_file(const std::filesystem::path& path, CheckpointHeader header,
                                       std::string_view content);

/// The file that a checkpoint at `path` replaces: `path`, or what it is a symbolic link to. What is no file, as a
/// device or a pipe, must not be replaced by one. \throws std::system_error  it is such a thing, or a link to nothing.
std::filesystem::path replaceable_file(const std::filesystem::path& path);

struct CheckpointFile {
  CheckpointHeader header;
  std::string content;
};

/// A file that write_checkpoint_file() wrote; nothing when there is none.
/// \throws lrun::CheckpointError  it is torn, damaged or something else, or cannot be read; names it and says why.
std::optional<CheckpointFile> read_checkpoint_file(const std::filesystem::path& path);

/// Reads the whole file and checks it, in little memory.
/// \return the header; nothing when there is no such file.
/// \throws lrun::CheckpointError  as read_checkpoint_file().
std::optional<CheckpointHeader> check_checkpoint_file(const std::filesystem::path& path);

/// Whether the file is there and its header fits its size: all that can be known without reading the whole.
bool looks_like_checkpoint(const std::filesystem::path& path) noexcept;

/// Makes what happened in a folder (renamed, removed) outlast a power cut.
/// \throws std::system_error  names the folder.
void sync_folder(const std::filesystem::path& folder);

}  // namespace lrun::detail
