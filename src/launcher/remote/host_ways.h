#pragma once

#include <cstddef>
#include <vector>

namespace lrun::launcher {

/// In place of a host: the head makes the connection.
inline constexpr int kFromHead = -1;

/// How many hosts one lrun connects to.
inline constexpr std::size_t kMostConnections = 32;

/// From where each host is reached, so that no lrun makes more than `most` connections: kFromHead, or the index of a
/// host before it, whose lrun makes the connection. Ways are as short as possible, and hosts that are equally far have
/// equally many behind them, but for one. Hosts that are `here` need no connection and make none. Pure. \param most  at
/// least 1.
std::vector<int> host_ways(const std::vector<bool>& here, std::size_t most);

}  // namespace lrun::launcher
