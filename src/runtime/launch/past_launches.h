#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/launch/board.h"

namespace lrun {

/// The launches of this program so far, for ranks that execute it again and come to them, too. One thread at a time.
class PastLaunches {
 public:
  /// The number of the next one: 1, 2, 3, …
  [[nodiscard]] int next() const { return count_ + 1; }
  [[nodiscard]] const std::vector<PastLaunch>& all() const { return launches_; }

  /// Runs the next one, and notes what it returned or threw.
  /// \param keeps  false: nobody will execute this program again; only the number is noted.
  std::string record(bool keeps, const std::function<std::string()>& launch);

  /// In a rank: does what the next one of `launches` did. \return what it returned. \throws what it threw.
  std::string replay(const std::vector<PastLaunch>& launches);

 private:
  int count_ = 0;
  std::vector<PastLaunch> launches_;
};

}  // namespace lrun
