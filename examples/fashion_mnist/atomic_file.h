#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fashion_mnist {

/// Replaces `path` by `content` in one step: whoever opens it, at any time and after a power cut, finds the old content
/// or the new, never a part. A length and a checksum go with the content, so that later damage is seen too.
///
/// One writer at a time: the new content is written to `path`.tmp first, which is removed when that fails.
/// \throws std::system_error  the disk is full, the folder is missing; names the file.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// Whether replace_file() can work there, asked before the hours that lead to it.
/// \throws std::system_error  the folder is missing or may not be written, or `path` is itself a folder; names the
/// file.
void check_replaceable(const std::filesystem::path& path);

/// The content that replace_file() wrote, or nothing when there is no such file.
/// \throws DataError  the file is torn or is not ours; names it.
/// \throws std::system_error  it cannot be read.
std::optional<std::string> read_file(const std::filesystem::path& path);

}  // namespace fashion_mnist
