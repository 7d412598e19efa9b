#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/rendezvous_plan.h"
#include "rendezvous/job_events.h"
#include "rendezvous/job_member.h"
#include "run/job_strength.h"
#include "run/repeat_filter.h"
#include "supervise/restart_policy.h"
#include "supervise/run_observer.h"
#include "verdict/job_verdict.h"

namespace lrun::launcher {

/// Connects a run with the other nodes of its job: reports to them why it stops and how its attempts end, stops with
/// them, and gives every attempt the verdict of all nodes. One thread.
class JobObserver : public PassingObserver, private JobEvents {
 public:
  struct Calls {
    /// Stop what runs here, or waits to run. `victim`: a worker failed elsewhere that looks like a victim of another.
    std::function<void(const RunEnd& end, bool victim)> stop;
    /// An attempt is over on all nodes. `final`: none may follow.
    std::function<void(const Verdict& verdict, bool final)> over;
    std::function<void()> begin;                        ///< the next attempt, as membership() says
    std::function<void(const std::string& text)> note;  ///< for people: what happens to the job
    std::function<void(const std::string& line)> warn;  ///< the same, where something is wrong
  };

  /// Everything must outlive this. `membership` is that of the first attempt.
  JobObserver(JobMember& job, Membership membership, const RendezvousPlan& rendezvous, RunObserver& next, Calls calls);

  [[nodiscard]] const Membership& membership() const { return membership_; }

  /// No worker of this node's attempt is left; `over` follows. `screen`: what the console here has shown of it.
  /// `checkpoint_ns`: as in JobReport.
  void attempt_over(const RunOutcome& outcome, bool wants_no_more, ScreenLines screen, std::int64_t checkpoint_ns);
  /// For the next attempt; `begin` or `stop` follows. Pointers to the workers' store are void.
  /// `keeps`: whose files in memory this node has copies of.
  void ready(const RestartHistory& history, const std::vector<FileOwner>& keeps);
  /// A user of this node wants the job to end while the node waits for others.
  void stop_others(const RunEnd& end);
  /// A user of this node wants the end while workers are being stopped because of another node. \return true: this node
  /// ends by itself, since no other node is left, or the others can do without it and were notified.
  bool leave_while_stopping(const RunEnd& end);
  /// This node could not start its workers. It leaves the job where the others can do without it, else the job stops.
  void start_failed(const FailureRecord& record);
  /// Processes that this node started do not end: it cannot take part in another attempt, but others may.
  void cannot_clean_up();
  /// This node is done; nothing more is called. `text`: how the job ended; empty: it succeeded.
  void leave(const std::string& text);

  /// Of the round, without the nodes that are lost.
  [[nodiscard]] JobStrength strength() const;
  /// Nothing runs here, and this node waits for the others.
  [[nodiscard]] bool waits() const { return state_ == State::kReported || state_ == State::kIsReady; }
  /// Nothing runs here between two attempts.
  [[nodiscard]] bool waits_to_begin() const { return state_ == State::kIsReady; }
  /// The job is lost, or this node has left it: no report will come about how the attempt ended elsewhere.
  [[nodiscard]] bool is_alone() const { return alone_; }

  /// Of launchers whose output people read in one place, this one says what happens to the job: that of node rank 0, or
  /// the next one where that is gone. One that is alone is not heard by others.
  [[nodiscard]] bool speaks() const {
    return (alone_ && !all_were_told_) || membership_.self.node_rank == (round_.first_is_gone ? 1 : 0);
  }

  void stopping(const RunEnd& end, const FailureRecord* cause, RunningWorkers others) override;

 private:
  enum class State { kRunning, kReported, kDeciding, kIsReady, kDone };

  /// Facts that became known in one round.
  struct Round {
    std::optional<NodeLoss> loss;              ///< of the first node that was lost, in this attempt or since
    std::string loss_text;                     ///< the same, without what follows from it
    int lost = 0;                              ///< number of this attempt's nodes that were lost
    bool leader_is_lost = false;               ///< and is counted in `lost`
    bool first_is_gone = false;                ///< node rank 0, or nobody reads what it says
    std::optional<FailureRecord> their_cause;  ///< why another node stops
    std::int64_t end_ns = 0;                   ///< when this node began to stop; 0: it does not stop
    RepeatFilter printed;

    void count_leader() {
      if (!std::exchange(leader_is_lost, true)) ++lost;
    }
  };

  void begun(const Membership& membership) override;
  void waiting(const std::string& text) override;
  void stop(const std::string& text) override;
  void lost(const std::string& node, const std::string& how, std::int64_t heard_ns, const std::string& spare) override;
  void resized(const std::string& node, const std::string& text) override;
  void over(const std::string& report) override;
  void ended(const std::string& why, bool by_leader) override;
  void leaderless(const std::string& how, std::int64_t heard_ns) override;
  void rejected(const std::string& line) override { calls_.warn(line); }
  void not_published(const std::string& why) override;
  void redirected(const std::string& text) override { calls_.note(text); }
  void second_job(const std::string& text) override { calls_.warn(text); }

  void stop_for_loss(const RunEnd& end, const std::string& text, std::int64_t heard_ns);
  void judge_round(const JobReport& report);
  void notify_of_stop(const RunEnd& end, const FailureRecord* cause);
  void drop_out(const std::string& why);

  JobMember& job_;
  Membership membership_;
  const RendezvousPlan& rendezvous_;
  Calls calls_;
  State state_ = State::kRunning;
  Round round_;
  bool final_ = false;               ///< a node wants no further attempt
  bool alone_ = false;               ///< nothing more comes from the job
  bool all_were_told_ = false;       ///< the leader has ended the job
  bool abandons_when_idle_ = false;  ///< the others go on without this node as soon as nothing runs here
  JobReport own_report_;
};

}  // namespace lrun::launcher
