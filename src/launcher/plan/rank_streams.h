#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log_stream.h"

namespace lrun::launcher {

/// Output streams by local rank, in the grammar of torchrun's -r and -t. A value.
struct RankStreams {
  /// Bits: 1 is stdout, 2 is stderr.
  using Streams = unsigned;

  Streams all = 0;                               ///< of every local rank, when `by_rank` is empty
  std::vector<std::pair<int, Streams>> by_rank;  ///< of these local ranks, and none of any other

  [[nodiscard]] bool has(int local_rank, LogStream stream) const;

  bool operator==(const RankStreams&) const = default;
};

/// Reads '0' (none), '1' (stdout), '2' (stderr), '3' (both), or a map from local ranks such as '0:3,12:1'. The last
/// entry of a rank counts. Empty when the text is nothing of these.
std::optional<RankStreams> parse_rank_streams(std::string_view text);

}  // namespace lrun::launcher
