#pragma once

#include <cstdint>
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

  /// \param lines  how many lines the console has got so far
  ConsoleReporter(RunFactsForText facts, EventLog& events, Say say, std::function<std::uint64_t()> lines)
      : facts_(std::move(facts)), events_(events), say_(std::move(say)), lines_(std::move(lines)) {}

  void worker_ended(const FailureRecord& record) override;
  void settling(const FailureRecord& failed, Duration moment) override;
  void stopping(const RunEnd& end, const FailureRecord* cause, int others) override;
  void killing(int others) override;
  void terminal_came_back(int rank, int others) override;
  void suspended() override;
  void resumed() override;

  /// verdict_line() was printed already.
  [[nodiscard]] bool has_told(const Verdict& verdict) const;
  /// So few lines were printed after that, or after the start, that a person still sees it.
  [[nodiscard]] bool is_on_screen() const;
  /// The reason why workers are stopped was printed since the last call.
  [[nodiscard]] bool take_told_stop() { return std::exchange(stop_told_, false); }

 private:
  RunFactsForText facts_;
  EventLog& events_;
  Say say_;
  std::function<std::uint64_t()> lines_;
  std::pair<int, int> told_{-1, -1};  ///< rank and attempt
  std::uint64_t told_at_ = 0;         ///< lines by then
  bool stop_told_ = false;
  bool killing_told_ = false;  ///< with the reason of the end
};

}  // namespace lrun::launcher
