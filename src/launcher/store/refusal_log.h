#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace lrun::launcher {

/// Which of the connections that a store refuses are worth a line. A value.
///
/// Whoever reaches the port can be refused as often as he likes: the first one of each reason is said, up to eight
/// reasons, and else one a minute; the others are counted.
class RefusalLog {
 public:
  /// \param what  was done; the peer follows
  /// \param rest  the same of those that are only counted
  explicit RefusalLog(std::string what = "store: closed the connection of", std::string rest = "store: refused")
      : what_(std::move(what)), rest_(std::move(rest)) {}

  /// \return the line to say, if it is one of those.
  std::optional<std::string> refused(std::string_view peer, const std::string& reason, SteadyTime now);

  /// One line about all that were only counted, which count no more; empty when there are none.
  std::string take_rest();

 private:
  std::string what_;
  std::string rest_;
  std::vector<std::string> reasons_;  ///< that were said
  std::uint64_t counted_ = 0;
  SteadyTime last_{};  ///< when a line was said
};

}  // namespace lrun::launcher
