#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rendezvous/clock_offset.h"
#include "rendezvous/job_events.h"

namespace lrun::launcher {

/// A launcher with workers as a member of its job; Job is one. The launchers' messages about their workers are opaque
/// text here.
class JobMember {
 public:
  JobMember() = default;
  JobMember(const JobMember&) = delete;
  JobMember& operator=(const JobMember&) = delete;
  virtual ~JobMember() = default;

  /// From now on `events` is called; it must live until the next call, or as long as the loop runs.
  virtual void set_events(JobEvents& events) = 0;

  /// Questions that any node asks all others, for people. Questions and answers are opaque text here.
  struct Questions {
    /// Another node asks. `reply` takes the answer of this one, at most kMostReportBytes, now or later.
    std::function<void(const std::string& question, std::function<void(const std::string& answer)> reply)> asked;
    std::function<void(const std::string& answer)> answered;  ///< by another node
  };
  virtual void set_questions(Questions questions) = 0;
  /// Asks all other nodes of the round. One that is lost does not answer.
  virtual void ask(const std::string& question) = 0;

  /// The workers of this node are being stopped; the others' are to be, too.
  virtual void stopping(const std::string& text) = 0;
  /// None of the workers of this node is left.
  virtual void report(const std::string& text) = 0;
  /// This node is ready for the next round. Pointers to the last workers' store are void.
  /// \param attempt  restarts used so far
  /// \param history  of the attempts, for nodes that join; the same on all nodes
  /// \param keeps    whose files in memory this node has copies of
  virtual void ready(int attempt, const std::string& history, const std::vector<FileOwner>& keeps) = 0;

  /// This node leaves the job, which goes on without it; nothing more is reported. Only where may_drop_out().
  virtual void drop_out(const std::string& why) = 0;
  /// As if this launcher were killed: its successors go on with the job. Nothing more is reported. Only where
  /// has_successors().
  virtual void abandon() = 0;
  /// This launcher is done with the job; nothing more is reported. `text`: how the job ended; empty: it succeeded.
  virtual void leave(const std::string& text) = 0;

  /// The others can go on without this node: it does not lead, or etcd knows another leader.
  [[nodiscard]] virtual bool may_drop_out() const = 0;
  /// This launcher leads, and members of the round go on when it is lost.
  [[nodiscard]] virtual bool has_successors() const = 0;
  /// Of the leader; while there is none, of the one that was lost, by whose clock the loss was reported.
  [[nodiscard]] virtual ClockOffset clock_offset() const = 0;
};

}  // namespace lrun::launcher
