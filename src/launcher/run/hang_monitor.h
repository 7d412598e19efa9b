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

/// Watches an attempt for --hang-timeout: prints that it hangs and where every rank is, then does what --on-hang asks.
/// One thread.
class HangMonitor {
 public:
  /// Everything must outlive this.
  HangMonitor(EventLoop& loop, const LaunchPlan& plan, Attempt& attempt, const LogRouter& logs, MessageSink& sink,
              const LookAtRanks& look);

  /// Call it before another sample of the ranks' stacks begins: two debuggers cannot trace one process.
  void end_look() { looking_.reset(); }

 private:
  [[nodiscard]] RunProgress progress() const;
  void hangs();
  void keep(std::string_view stacks) const;
  void saw_stacks(const std::optional<std::vector<StackSample>>& samples, const std::string& problem);

  EventLoop& loop_;
  const LaunchPlan& plan_;
  Attempt& attempt_;
  const LogRouter& logs_;
  MessageSink& sink_;
  const LookAtRanks& look_;
  std::shared_ptr<void> looking_;  ///< while stacks are being asked for
  HangWatch watch_;
};

}  // namespace lrun::launcher
