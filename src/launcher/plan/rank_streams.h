#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log_stream.h"

namespace lrun::launcher {

/// Which output streams of which local ranks, as torchrun's -r and -t say it. A value.
struct RankStreams {
  /// Bits: 1 is stdout, 2 is stderr.
  using Streams = unsigned;

  Streams all = 0;                               ///< of every local rank, when there is no map
  std::vector<std::pair<int, Streams>> by_rank;  ///< local ranks; others have none. Empty: `all` holds

  [[nodiscard]] bool has(int local_rank, LogStream stream) const;

  bool operator==(const RankStreams&) const = default;
};

/// Reads '0' (none), '1' (stdout), '2' (stderr), '3' (both), or a map from local ranks such as '0:3,12:1'; of a rank
/// that comes twice the last entry counts. Empty when the text is none of these.
std::optional<RankStreams> parse_rank_streams(std::string_view text);

}  // namespace lrun::launcher
