#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "report/event_log.h"
#include "report/verdict_text.h"
#include "supervise/run_observer.h"

namespace lrun::launcher {

/// Prints what happens to a run (through `say`), and writes it to events.jsonl.
class ConsoleReporter : public RunObserver {
 public:
  /// \return the text was printed here
  using Say = std::function<bool(const std::string& text)>;
  /// How many lines this launcher's console has got so far; empty where a person may not see all of them.
  using Lines = std::function<std::optional<std::uint64_t>()>;

  ConsoleReporter(RunFactsForText facts, EventLog& events, Say say, Lines lines)
      : facts_(std::move(facts)), events_(events), say_(std::move(say)), lines_(std::move(lines)) {}

  void worker_ended(const FailureRecord& record) override;
  void settling(const FailureRecord& failed, Duration moment) override;
  void stopping(const RunEnd& end, const FailureRecord* cause, RunningWorkers others) override;
  void killing(int others) override;
  void terminal_came_back(int rank, int others) override;
  void suspended() override;
  void resumed() override;

  /// Of a terminal's usual 24: what stands above so many lines is still seen.
  static constexpr int kLinesOnScreen = 12;

  /// Workers are started again: what was told of the ones before says nothing about these.
  void begin_attempt();

  /// verdict_line() was printed already.
  [[nodiscard]] bool has_told(const Verdict& verdict) const;
  /// Lines that this launcher's console has got since the workers were told to stop; 0: they were not.
  [[nodiscard]] int lines_since_stop() const;
  /// A person still sees what was printed when the console had got so many lines.
  [[nodiscard]] bool is_on_screen(std::uint64_t lines) const { return lines_since(lines) <= kLinesOnScreen; }
  /// The reason why workers are stopped was printed since the last call.
  [[nodiscard]] bool take_told_stop() { return std::exchange(stop_told_, false); }

 private:
  [[nodiscard]] int lines_since(std::uint64_t lines) const;

  RunFactsForText facts_;
  EventLog& events_;
  Say say_;
  Lines lines_;
  std::pair<int, int> told_{-1, -1};      ///< rank and attempt
  bool end_told_ = false;                 ///< that was asked for, with no worker to blame
  std::optional<std::uint64_t> stop_at_;  ///< lines by then
  bool stop_told_ = false;
  bool killing_told_ = false;  ///< with the reason of the end
};

}  // namespace lrun::launcher
