#pragma once

#include <vector>

#include "base/duration.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// Workers that still run.
struct RunningWorkers {
  int workers = 0;
  int nodes = 1;  ///< on which they are; 1 also where that is not known

  bool operator==(const RunningWorkers&) const = default;
};

/// Gets the events of a run as they happen, on the loop's thread.
class RunObserver {
 public:
  RunObserver() = default;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;
  virtual ~RunObserver() = default;

  virtual void worker_ended(const FailureRecord& record) = 0;
  /// A worker failed. The others have `moment` to report more before they are stopped.
  virtual void settling(const FailureRecord& failed, Duration moment) = 0;
  /// The run begins to stop. `cause` is the failed worker to blame, or nullptr when none failed. `others` are to be
  /// stopped, on all nodes of a job.
  virtual void stopping(const RunEnd& end, const FailureRecord* cause, RunningWorkers others) = 0;
  virtual void killing(int others) = 0;
  /// The program that had lrun's terminal has left it. `others` still run.
  virtual void terminal_came_back(int rank, int others) = 0;
  virtual void suspended() = 0;
  virtual void resumed() = 0;
};

/// Passes every call on to another observer. A base for observers that add something to single calls.
class PassingObserver : public RunObserver {
 public:
  /// `next` must outlive this.
  explicit PassingObserver(RunObserver& next) : next_(next) {}

  void worker_ended(const FailureRecord& record) override { next_.worker_ended(record); }
  void settling(const FailureRecord& failed, Duration moment) override { next_.settling(failed, moment); }
  void stopping(const RunEnd& end, const FailureRecord* cause, RunningWorkers others) override {
    next_.stopping(end, cause, others);
  }
  void killing(int others) override { next_.killing(others); }
  void terminal_came_back(int rank, int others) override { next_.terminal_came_back(rank, others); }
  void suspended() override { next_.suspended(); }
  void resumed() override { next_.resumed(); }

 private:
  RunObserver& next_;
};

/// The outcome of a supervised attempt.
struct RunOutcome {
  RunEnd end;
  std::vector<FailureRecord> records;  ///< one a worker, in the order of their ends
  std::vector<RankPlace> places = {};  ///< where workers were before they were stopped; empty: not sampled
};

}  // namespace lrun::launcher
