#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/message_sink.h"
#include "run/attempt.h"
#include "run/rank_look.h"
#include "supervise/hang_watch.h"

namespace lrun::launcher {

/// Watches an attempt for --hang-timeout: says that it hangs and where every rank is, then does what --on-hang asks.
class HangMonitor {
 public:
  /// Everything must outlive this.
  HangMonitor(EventLoop& loop, const LaunchPlan& plan, Attempt& attempt, const LogRouter& logs, MessageSink& sink);

  /// Somebody else is going to look where the ranks are: two debuggers cannot.
  void end_look() { stacks_.reset(); }

 private:
  [[nodiscard]] RunProgress progress() const;
  void hangs();
  void keep(std::string_view stacks) const;
  void stacks_told(const std::optional<std::vector<StackSample>>& samples, const std::string& problem);

  EventLoop& loop_;
  const LaunchPlan& plan_;
  Attempt& attempt_;
  const LogRouter& logs_;
  MessageSink& sink_;
  std::unique_ptr<ToolRun> stacks_;  ///< while they are being asked for
  HangWatch watch_;
};

}  // namespace lrun::launcher
