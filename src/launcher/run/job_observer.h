#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/rendezvous_plan.h"
#include "rendezvous/job.h"
#include "run/repeat_filter.h"
#include "supervise/restart_policy.h"
#include "supervise/run_observer.h"
#include "verdict/job_verdict.h"

namespace lrun::launcher {

/// What a run has to do with the other nodes of its job: tells them why it stops and what its attempts come to, stops
/// with them, and gives every attempt the verdict that all nodes give it. As an observer it passes everything on.
class JobObserver : public RunObserver, private JobEvents {
 public:
  struct Calls {
    /// What runs here, or waits to run. `victim`: a worker failed elsewhere that looks like a victim of another.
    std::function<void(const RunEnd& end, bool victim)> stop;
    /// An attempt is over on all nodes. `final`: none may follow.
    std::function<void(const Verdict& verdict, bool final)> over;
    std::function<void()> begin;                        ///< the next attempt, as membership() says
    std::function<void(const std::string& text)> note;  ///< for people: what happens to the job
    std::function<void(const std::string& line)> warn;  ///< the same, of what should not happen
  };

  /// Everything must outlive this. `membership` is that of the first attempt.
  JobObserver(Job& job, Membership membership, const RendezvousPlan& rendezvous, RunObserver& next, Calls calls);

  [[nodiscard]] const Membership& membership() const { return membership_; }

  /// Nothing of this node's attempt is left; `over` follows.
  void attempt_over(const RunOutcome& outcome, bool wants_no_more);
  /// For the next attempt; `begin` or `stop` follows. Pointers to the workers' store are void.
  void ready(const RestartHistory& history);
  /// Somebody here wants the job to end while this node waits for others.
  void stop_others(const RunEnd& end);
  /// Somebody here wants the end while workers are being stopped for another node's sake. \return true: this node goes
  /// by itself, since no other is left or the others, who were told, can do without it.
  bool leave_while_stopping(const RunEnd& end);
  /// This node could not start its workers. It leaves the job where the others can do without it, else the job stops.
  void start_failed(const FailureRecord& record);
  /// What this node started does not end: it cannot take part in another attempt, but others may.
  void cannot_clean_up();
  /// We are done; nothing more is called. `text`: what the job came to, empty when it succeeded.
  void bye(const std::string& text);

  /// '3 of 2:4 nodes'.
  [[nodiscard]] std::string nodes_in_words(int nodes) const;

  /// Nothing runs here, and the others are waited for.
  [[nodiscard]] bool waits() const { return state_ == State::kReported || state_ == State::kIsReady; }

  /// The meeting is gone, or we have left it: nobody will say how the attempt ended elsewhere.
  [[nodiscard]] bool is_alone() const { return alone_; }

  /// Nothing runs here between two attempts.
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

  void begun(const Membership& membership) override;
  void waiting(const std::string& text) override;
  void stop(const std::string& text) override;
  void lost(const std::string& node, const std::string& how, std::int64_t heard_ns, const std::string& spare) override;
  void resized(const std::string& node, const std::string& text) override;
  void over(const std::string& report) override;
  void ended(const std::string& why) override;
  void leaderless(const std::string& how, std::int64_t heard_ns) override;
  void rejected(const std::string& line) override { calls_.warn(line); }
  void not_published(const std::string& why) override;
  void redirected(const std::string& text) override { calls_.note(text); }
  void second_job(const std::string& text) override { calls_.warn(text); }

  void note_loss(const RunEnd& end, const std::string& text, std::int64_t heard_ns);
  void judge_round(const JobReport& report);
  void tell(const RunEnd& end, const FailureRecord* cause);
  void drop_out(const std::string& why);
  void vanish();
  [[nodiscard]] bool may_leave(const RunEnd& end) const;
  [[nodiscard]] std::string takes_its_place(const std::string& spare) const;
  [[nodiscard]] std::string who_goes_on(int lost) const;
  [[nodiscard]] ClockShift shift() const;

  Job& job_;
  Membership membership_;
  const RendezvousPlan& rendezvous_;
  RunObserver& next_;
  Calls calls_;
  State state_ = State::kRunning;
  std::optional<NodeLoss> loss_;              ///< of a node, in this attempt or since
  std::string loss_text_;                     ///< who is lost and how, without what follows from it
  int lost_ = 0;                              ///< nodes, of those of this attempt
  bool final_ = false;                        ///< somebody wants no further attempt
  bool alone_ = false;                        ///< the meeting is gone, or we have left it: nothing more comes
  bool vanishes_ = false;                     ///< as soon as nothing runs here
  std::optional<FailureRecord> their_cause_;  ///< why another node stops
  std::int64_t end_ns_ = 0;                   ///< when this node began to stop
  JobReport own_report_;
  RepeatFilter told_;
};

}  // namespace lrun::launcher
