#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace lrun::launcher {

/// Decides which refused connections are logged. A value.
///
/// Any process that reaches the port can be refused again and again. The first refusal of each reason is logged, for up
/// to eight reasons; after that one a minute is logged and the others are counted.
class RefusalLog {
 public:
  /// \param what  the line up to the peer's address
  /// \param rest  the line about refusals that were only counted, up to their number
  explicit RefusalLog(std::string what = "store: closed the connection of", std::string rest = "store: refused")
      : what_(std::move(what)), rest_(std::move(rest)) {}

  /// \return the line to log, if this refusal is one to log.
  std::optional<std::string> refused(std::string_view peer, const std::string& reason, SteadyTime now);

  /// One line about the refusals that were only counted, and starts counting anew; empty when there are none.
  std::string take_rest();

 private:
  std::string what_;
  std::string rest_;
  std::vector<std::string> reasons_;  ///< logged so far
  std::uint64_t counted_ = 0;
  SteadyTime last_{};  ///< of the last line
};

}  // namespace lrun::launcher
