#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/checkpoint/format.h"

namespace lrun::detail {

/// The name of a file in a folder of checkpoints: 'step-000000000100.ckpt', 'step-000000000100.part-3-of-8.ckpt',
/// 'step-000000000100.manifest.ckpt'.
struct CheckpointName {
  CheckpointKind kind = CheckpointKind::kWhole;
  std::uint64_t step = 0;
  std::uint32_t part = 0;   ///< Of kPart; else 0.
  std::uint32_t parts = 0;  ///< Of kPart; else 0.

  bool operator==(const CheckpointName&) const = default;
};

std::string spell(const CheckpointName& name);
/// Nothing for a name that spell() does not make.
std::optional<CheckpointName> parse_checkpoint_name(std::string_view name);

/// Ends the name of a file while it is written.
inline constexpr std::string_view kHalfWritten = ".tmp";

}  // namespace lrun::detail
