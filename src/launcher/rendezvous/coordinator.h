#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "rendezvous/admission.h"
#include "rendezvous/early_messages.h"
#include "rendezvous/failed_start.h"
#include "rendezvous/failover.h"
#include "rendezvous/outbox.h"
#include "rendezvous/redirection.h"
#include "rendezvous/roster.h"
#include "rendezvous/round.h"
#include "rendezvous/round_timing.h"

namespace lrun::launcher {

/// Decides, for the leader of a job, which launchers take part, when a round begins, that it stops, and when it is over
/// everywhere. Pure: messages and the time go in, messages come out. A value.
///
/// A round: all join (or say that they are ready again) → kBegin to all → the first kStopping, or the loss of a
/// launcher, or kResize where a newcomer finds a place, goes to all others → all have reported → kOver to all. Each
/// launcher then decides by itself from the same reports: ready for the next round, or done. The next round begins with
/// those that are ready and with newcomers, as many as the job may have. With too few of them it waits for more. Each
/// step costs a fixed number of messages a launcher.
///
/// Its parts decide one thing each. The EarlyMessages keeps messages that come too early. Admission knows which
/// launchers may join, the Roster which are there, the Round what its members did, RoundTiming how long they wait for
/// each other. A Failover exists while this leader goes on with a job of another one and has not begun a round.
/// Redirection knows where the job meets, where that is elsewhere.
///
/// A launcher whose node cannot start its workers joins only to report that. A job that needs every node then ends for
/// all. A newcomer that finds no place is a spare: it waits for a round that has one, and knows the successors.
class Coordinator {
 public:
  struct Options {
    RendezvousTimes times = {};
    MergeReports merge;          ///< must not be empty
    std::string own_token = {};  ///< of the leader's own launcher, for which the others wait; empty: they do not
    std::vector<std::string> hosts = {};  ///< of the job, by node rank; empty: not known
    /// The members could go on without this leader: it stops when it may have lost them.
    bool members_elect_leader = false;
  };

  Coordinator(Options options, SteadyTime now);

  /// Before anybody has joined: goes on with a job that another leader began.
  /// \param ballot  of the members, without etcd: enough of them have to come back, else the job ends after two
  ///                heartbeats. Empty: the job goes on when one launcher that took part in it joins. All wait for that;
  ///                where none comes within a heartbeat, this is a new job with the old one's name.
  void resume(const JobState& state, const std::optional<Ballot>& ballot, SteadyTime now);
  /// The job, which has not begun here, meets elsewhere: all launchers are redirected, also those that come later.
  /// Empty: that failed, and all meet here, as if none had come yet.
  void redirect_to(const std::optional<RendezvousAddress>& target, SteadyTime now);
  [[nodiscard]] const std::optional<RendezvousAddress>& redirect() const { return redirection_.target(); }

  /// The first message of a connection has to be kJoin or kInvite.
  void received(ConnectionId from, const LauncherMessage& message, SteadyTime now);
  /// A connection ended, or was silent for too long: `how` says it. \param heard  its last sign of life
  /// \param may_run  it did not say that it leaves, and it is not known to be dead
  void left(ConnectionId who, const std::string& how, SteadyTime now, SteadyTime heard, bool may_run = false);
  /// Time has passed.
  void advance(SteadyTime now);
  /// When advance() has to be called at the latest; empty: not before something happens.
  [[nodiscard]] std::optional<SteadyTime> deadline() const;
  /// The messages and warnings that have to go out.
  Outbox& outbox() { return outbox_; }

  /// The state from which another leader can go on, once a round has begun.
  [[nodiscard]] JobState state() const;
  /// By this coordinator.
  [[nodiscard]] int rounds_begun() const { return rounds_begun_; }
  /// Where a member of the round could lead the job instead. Empty: it is no member, or cannot.
  [[nodiscard]] std::optional<RendezvousAddress> standby_of(ConnectionId who) const;
  /// No launcher takes part any more, and none will.
  [[nodiscard]] bool over() const;
  /// 'joined: node 'a' from 10.0.0.1 (2 workers); missing: 1 of 2 nodes'.
  [[nodiscard]] std::string who_is_there() const;

 private:
  enum class Phase {
    kGathering,  ///< launchers join; there is no round yet
    kRunning,    ///< workers run
    kDeciding,   ///< a round is over: its members get ready for the next one, or leave
    kClosed,     ///< no launcher may join
  };

  void admit_waiting(SteadyTime now);
  void invited(ConnectionId from, const LauncherMessage& invitation, SteadyTime now);
  void join(ConnectionId from, const LauncherMessage& message, SteadyTime now);
  void admit(ConnectionId from, const LauncherMessage& message, SteadyTime now);
  void go_on_from(const JobState& state, const std::optional<Ballot>& ballot, SteadyTime since);
  void fail_start(ConnectionId from, const JoinRecord& record, SteadyTime now);
  void note(const JoinRecord& record, const std::string& what, SteadyTime now);
  void ready(ConnectionId from, const LauncherMessage& message, SteadyTime now);
  void leave(ConnectionId from, const std::string& end, SteadyTime now);
  void begin_if_due(SteadyTime now);
  void begin(const std::vector<ConnectionId>& ids);
  void grow_if_due(SteadyTime now);
  void finish_round_if_reported(SteadyTime now);
  void review_spares(SteadyTime now);
  void close(const LauncherMessage& message, bool members_stay);

  RendezvousTimes times_;
  MergeReports merge_;
  EarlyMessages early_messages_;
  std::vector<std::string> hosts_;
  Admission admission_;
  FailedStart failed_start_;
  Redirection redirection_;
  Roster roster_;
  RoundTiming timing_;
  Phase phase_ = Phase::kGathering;
  std::optional<Round> round_;        ///< that runs, or was the last
  std::optional<Failover> failover_;  ///< the job was begun by another leader, and no round has begun here since
  std::optional<Majority> majority_;  ///< where the members could go on without this leader
  bool is_new_ = false;               ///< a launcher has joined that belonged to no job
  int rounds_begun_ = 0;
  int newest_round_ = -1;             ///< that a launcher has seen
  int attempt_ = 0;                   ///< of the next round, as the launchers say that are ready
  std::string history_;               ///< the same
  std::string run_id_;                ///< of the job, since its first round
  std::string who_left_;              ///< the first node for which there was no next round
  std::optional<SteadyTime> review_;  ///< whether a spare waits for a rank that is taken for good
  Outbox outbox_;
};

}  // namespace lrun::launcher
