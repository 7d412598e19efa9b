#pragma once

#include <functional>
#include <string>
#include <utility>

#include "report/event_log.h"
#include "report/verdict_text.h"
#include "supervise/run_observer.h"

namespace lrun::launcher {

/// Prints what happens to a run (through `say`), and writes it to events.jsonl.
class ConsoleReporter : public RunObserver {
 public:
  using Say = std::function<void(const std::string& text)>;

  ConsoleReporter(RunFactsForText facts, EventLog& events, Say say)
      : facts_(std::move(facts)), events_(events), say_(std::move(say)) {}

  void worker_ended(const FailureRecord& record) override;
  void settling(const FailureRecord& failed, Duration moment) override;
  void stopping(const RunEnd& end, const FailureRecord* cause, int others) override;
  void killing(int others) override;
  void terminal_came_back(int rank, int others) override;
  void suspended() override;
  void resumed() override;

  /// The culprit was printed already.
  [[nodiscard]] bool has_told(const FailureRecord& culprit) const {
    return told_ == std::pair(culprit.rank, culprit.attempt);
  }
  /// The reason why workers are stopped was printed since the last call.
  [[nodiscard]] bool take_told_stop() { return std::exchange(stop_told_, false); }

 private:
  RunFactsForText facts_;
  EventLog& events_;
  Say say_;
  std::pair<int, int> told_{-1, -1};  ///< rank and attempt
  bool stop_told_ = false;
  bool killing_told_ = false;  ///< with the reason of the end
};

}  // namespace lrun::launcher
