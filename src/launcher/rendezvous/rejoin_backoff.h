#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "rendezvous/join_record.h"

namespace lrun::launcher {

/// Which nodes left rounds of a job, and when. Each time all others start anew, and that costs no restart: a node that
/// comes and goes for ever would keep a job from ever getting anywhere. After kMost times within kWindow it has to stay
/// away until the first of them is so long ago. Launchers of one host with different node ranks are different nodes.
/// Pure: time goes in. A value.
class RejoinBackoff {
 public:
  static constexpr std::size_t kMost = 5;
  static constexpr Duration kWindow = std::chrono::minutes(10);

  /// The node was in a round and has left it.
  void note(const JoinRecord& node, SteadyTime now);

  /// How long the node has to stay away, in whole seconds; zero: it may come.
  [[nodiscard]] Duration wait(const JoinRecord& node, SteadyTime now) const;

  /// '5 times within 10m'.
  static std::string limit_text();

 private:
  std::map<std::string, std::deque<SteadyTime>> left_;  ///< the last kMost times of each node that left within kWindow
};

}  // namespace lrun::launcher
