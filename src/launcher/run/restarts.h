#pragma once

#include <map>
#include <string>
#include <utility>

#include "plan/launch_plan.h"
#include "supervise/restart_policy.h"

namespace lrun::launcher {

/// Decides by the outcome of all attempts of a run so far whether another one follows, and names the folder of each
/// attempt. The plan's personality (--compat) says whether a failure that repeats itself is tried again. A value.
class Restarts {
 public:
  explicit Restarts(const LaunchPlan& plan)
      : rules_{plan.max_restarts.value, plan.restart_backoff.value, plan.personality.repeats_identical} {}

  [[nodiscard]] const RestartRules& rules() const { return rules_; }
  /// The last choice that was made, with its history.
  [[nodiscard]] const RestartChoice& last() const { return last_; }

  /// The choice that follows an attempt with this verdict.
  [[nodiscard]] RestartChoice choice_after(const Verdict& verdict) const {
    return choose_restart(rules_, last_.history, verdict);
  }
  void make(RestartChoice choice) { last_ = std::move(choice); }

  /// The history of a job that this node joins, or of its last round. Text that cannot be read changes nothing.
  void take_history(const std::string& text) {
    if (auto history = restart_history_from_json(text)) last_.history = *std::move(history);
  }

  /// The folder for the files of attempt `number`, which is about to start. A change of nodes starts the same one
  /// again.
  std::string next_folder(int number) {
    const int before = starts_[number]++;
    return "attempt_" + std::to_string(number) + (before == 0 ? "" : "_again_" + std::to_string(before));
  }

 private:
  RestartRules rules_;
  RestartChoice last_;
  std::map<int, int> starts_;  ///< by the number of the attempt
};

}  // namespace lrun::launcher
