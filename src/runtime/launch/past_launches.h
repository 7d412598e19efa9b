#pragma once

#include <functional>
#include <string>

#include "runtime/launch/launch_history.h"

namespace lrun::detail {

/// The launches of this program so far, for ranks that execute it again and come to them, too. One thread at a time.
class PastLaunches {
 public:
  /// The number of the next one: 1, 2, 3, …
  [[nodiscard]] int next() const { return count_ + 1; }

  /// Where ranks find those that were kept: descriptor of a LaunchHistory; -1: there are none.
  /// \throws lrun::Error  one could not be kept, and such ranks would go another way; says why.
  [[nodiscard]] int history() const;

  /// Runs the next one, and keeps what it returned or threw.
  /// \param keeps  false: nobody will execute this program again; only the number is noted.
  std::string record(bool keeps, const std::function<std::string()>& launch);

  /// In a rank: does what the next one in `history` did. \return what it returned. \throws what it threw.
  std::string replay(LaunchHistory& history);

 private:
  void keep(const PastLaunch& outcome);

  int count_ = 0;
  LaunchHistory history_;
  std::string loss_;  // why one could not be kept; empty: all were
};

}  // namespace lrun::detail
