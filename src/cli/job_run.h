#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/job.h"
#include "supervise/supervisor.h"
#include "verdict/job_verdict.h"

namespace lrun {

/// What a run has to do with the other nodes of its job: tells them why it stops and what its attempts come to, stops
/// with them, and gives every attempt the verdict that all nodes give it. As an observer it passes everything on.
class JobRun : public RunObserver {
 public:
  struct Calls {
    std::function<void(const RunEnd& end)> stop;  ///< what runs here, or waits to run
    /// An attempt is over on all nodes. `final`: none may follow.
    std::function<void(const Verdict& verdict, bool final)> over;
    std::function<void()> begin;  ///< the next attempt, as membership() says
  };

  /// Everything must outlive this. `membership` is that of the first attempt.
  JobRun(Job& job, Membership membership, std::string meeting, RunObserver& next, Calls calls);

  [[nodiscard]] const Membership& membership() const { return membership_; }

  /// Nothing of this node's attempt is left; `over` follows.
  void attempt_over(const RunOutcome& outcome, bool wants_no_more);
  /// For the next attempt; `begin` or `stop` follows.
  void ready();
  /// Somebody here wants the job to end while this node waits for others.
  void stop_others(const RunEnd& end);
  /// This node could not start its workers: the job stops, and does not hear of us again.
  void start_failed(const FailureRecord& record);
  /// We are done; nothing more is called.
  void bye();

  /// Nothing runs here, and the others are waited for.
  [[nodiscard]] bool waits() const { return state_ == State::kReported || state_ == State::kIsReady; }

  /// The same, between two attempts.
  [[nodiscard]] bool waits_to_begin() const { return state_ == State::kIsReady; }

  void worker_ended(const FailureRecord& record) override { next_.worker_ended(record); }
  void settling(const FailureRecord& failed, Duration moment) override { next_.settling(failed, moment); }
  void stopping(const RunEnd& end, const FailureRecord* cause, int others) override;
  void killing(int others) override { next_.killing(others); }
  void terminal_came_back(int rank, int others) override { next_.terminal_came_back(rank, others); }
  void suspended() override { next_.suspended(); }
  void resumed() override { next_.resumed(); }

 private:
  enum class State { kRunning, kReported, kDeciding, kIsReady, kDone };

  void told_to_stop(const std::string& text);
  void node_lost(const std::string& node, const std::string& how);
  void round_over(const std::vector<std::string>& reports);
  void judge_round(const std::vector<std::optional<NodeReport>>& reports);
  void begun(const Membership& membership);
  void tell(const RunEnd& end, const FailureRecord* cause);
  [[nodiscard]] ClockShift shift() const;

  Job& job_;
  Membership membership_;
  std::string meeting_;
  RunObserver& next_;
  Calls calls_;
  State state_ = State::kRunning;
  std::optional<RunEnd> loss_;                ///< of a node, in this attempt or since
  bool final_ = false;                        ///< somebody wants no further attempt
  bool alone_ = false;                        ///< the meeting is gone: nothing more comes
  std::optional<FailureRecord> their_cause_;  ///< why another node stops
  std::int64_t end_ns_ = 0;                   ///< when this node began to stop
  NodeReport own_report_;
};

}  // namespace lrun
