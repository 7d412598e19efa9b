#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/duration.h"
#include "rendezvous/join_record.h"

namespace lrun::launcher {

/// A job that ended before it began, because a node that it needs cannot start its workers: keeps the report for the
/// nodes that come later. Pure; a value.
class FailedStart {
 public:
  /// \param report   of the failure
  /// \param missing  nodes that have not heard of it
  void fail(const JoinRecord& node, std::string report, int missing, SteadyTime now) {
    run_name_ = node.run_name;
    report_ = std::move(report);
    missing_ = std::max(0, missing);
    until_ = now + kTimeout;
  }
  /// The report for a launcher of that job that comes now; empty: there is none.
  std::optional<std::string> report_for(const JoinRecord& node) {
    if (!until_ || node.run_name != run_name_) return std::nullopt;
    missing_ = std::max(0, missing_ - 1);
    return report_;
  }
  void advance(SteadyTime now) {
    if (until_ && now >= *until_) missing_ = 0;
  }
  /// Nodes are waited for that have not heard of it yet.
  [[nodiscard]] bool awaits_nodes() const { return missing_ > 0; }
  [[nodiscard]] std::optional<SteadyTime> deadline() const { return awaits_nodes() ? until_ : std::nullopt; }

 private:
  static constexpr Duration kTimeout{10'000};

  std::string run_name_;
  std::string report_;
  int missing_ = 0;
  std::optional<SteadyTime> until_;  ///< empty: there is no such failure
};

}  // namespace lrun::launcher
