#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lrun::detail {

/// The content of a checkpoint file.
enum class CheckpointKind : std::uint32_t {
  kWhole = 1,     ///< The whole checkpoint.
  kPart = 2,      ///< One rank's part.
  kManifest = 3,  ///< The list of the parts: a sharded checkpoint is complete when it is there.
};

/// The first 64 bytes of every file of a checkpoint; the content follows, and nothing else.
///
///     offset  0  'lrunckpt'                    32  part         u32
///             8  version (1)     u32           36  parts        u32
///            12  kind            u32           40  content size u64
///            16  step            u64           48  CRC-32C of the content u32
///            24  save            u64           52  zeros
///                                              60  CRC-32C of bytes 0 … 59 u32
///
/// Numbers are little-endian.
struct CheckpointHeader {
  CheckpointKind kind = CheckpointKind::kWhole;
  std::uint64_t step = 0;
  std::uint64_t save = 0;  ///< Different for each save, so that parts of two saves do not mix.
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  std::uint64_t content_size = 0;  ///< In bytes.
  std::uint32_t content_checksum = 0;

  bool operator==(const CheckpointHeader&) const = default;
};

inline constexpr std::size_t kCheckpointHeaderBytes = 64;
inline constexpr std::uint32_t kMostCheckpointParts = 1U << 20;

std::array<char, kCheckpointHeaderBytes> encode_checkpoint_header(const CheckpointHeader& header);

/// The header at the beginning of a file of `file_size` bytes, or why the file is no whole checkpoint file ('it is cut
/// off: 80 of 164 bytes'): pure. An accepted header describes exactly `file_size` bytes; the content is not checked.
/// \param bytes  the beginning of the file: at least the header, unless the file is shorter.
std::variant<CheckpointHeader, std::string> decode_checkpoint_header(std::string_view bytes, std::uint64_t file_size);

/// The entry of a manifest for one part.
struct CheckpointPart {
  std::uint64_t size = 0;  ///< Of the content, in bytes.
  std::uint32_t checksum = 0;

  bool operator==(const CheckpointPart&) const = default;
};

/// The content of a manifest: 12 bytes a part, in their order.
std::string encode_checkpoint_parts(const std::vector<CheckpointPart>& parts);

/// Nothing when `bytes` is not the content of a manifest of `parts` parts.
std::optional<std::vector<CheckpointPart>> decode_checkpoint_parts(std::string_view bytes, std::uint32_t parts);

}  // namespace lrun::detail
