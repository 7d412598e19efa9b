#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/attempt.h"
#include "process/tool_run.h"
#include "supervise/hang_watch.h"

namespace lrun {

/// Watches an attempt for --hang-timeout: says that it hangs and where every rank is, then does what --on-hang asks.
class HangGuard {
 public:
  /// `attempt` and `logs` must outlive this. `say` gets text for people.
  HangGuard(EventLoop& loop, const LaunchPlan& plan, Attempt& attempt, const LogRouter& logs,
            std::function<void(const std::string& text)> say);

 private:
  [[nodiscard]] RunProgress progress() const;
  void hangs();
  void keep(std::string_view stacks) const;
  void stacks_told(const ToolOutcome& outcome);

  EventLoop& loop_;
  const LaunchPlan& plan_;
  Attempt& attempt_;
  const LogRouter& logs_;
  std::function<void(const std::string& text)> say_;
  std::unique_ptr<ToolRun> stacks_;  ///< while they are being asked for
  HangWatch watch_;
};

}  // namespace lrun
