#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "rendezvous/admission.h"
#include "rendezvous/job_state.h"
#include "rendezvous/last_call.h"
#include "rendezvous/message.h"
#include "rendezvous/rejoin_backoff.h"
#include "rendezvous/successor_search.h"

namespace lrun::launcher {

/// Names one connection of a launcher for as long as the meeting is held; never used twice, and a later one is larger.
using LauncherId = std::uint64_t;

/// How long launchers wait for each other.
struct RendezvousTimes {
  Duration join{600'000};         ///< for enough of them
  Duration replacement{600'000};  ///< for others in the place of lost ones, where too few are left
  Duration last_call{1000};       ///< with enough of them, for one more: since the last one came
  Duration heartbeat{5000};       ///< a launcher that is silent for so long is lost
  Duration progress{5000};        ///< between two tables of who is missing
  int spares = 0;                 ///< nodes beyond those of the job that are to be there, too, before it begins
  Duration for_spares{30'000};    ///< with enough of the others, for these
  bool operator==(const RendezvousTimes&) const = default;
};

/// Where the launchers of a job meet.
struct RendezvousAddress {
  std::string address;  ///< numeric; a loopback one is on the host of who says it
  int port = 0;
  bool operator==(const RendezvousAddress&) const = default;
};

/// Decides, for the launcher that holds the meeting, who takes part in a job, when a round begins, that it stops, and
/// when it is over everywhere. Pure: what happened and the time go in, what is to be said comes out. A value.
///
/// A round: all join (or say that they are ready again) → kBegin to all → the first kStopping, or the loss of a
/// launcher, or kResize where one came for whom there is a place, is told to all others → all have reported → kOver to
/// all. What follows, everybody decides alike from the same reports: ready for the next round, or bye. The next round
/// begins with those that are ready and with newcomers, as many as the job may have; with too few of them it waits for
/// more. Each costs a fixed number of messages a launcher.
///
/// A node that leaves rounds again and again is not let in for a while (RejoinBackoff), so that nobody makes a job
/// start anew for ever.
///
/// A launcher whose node cannot start its workers only says so: a job that needs every node has ended then, and all are
/// told; others go on without it. Whoever is turned away is told to those that wait.
///
/// A newcomer for whom there is no place is a spare: it waits for a round that has one, or for the end, and knows who
/// may hold the meeting next. Where it is known how many there are (RendezvousTimes::spares), the first round waits for
/// them: one that comes after a job that was quickly over would find nobody.
///
/// With guard_majority() the meeting ends when more than half of a round's members are lost without a goodbye and may
/// still run: they can have gone on by themselves (SuccessorSearch).
///
/// A job can go on under another holder: its launchers join again, each as one that took part in a round, and say that
/// they are ready when none of their workers is left. That one invites whoever begins to meet at the job's endpoint, by
/// kInvite: a meeting in which no round has begun sends all on, also those that come later. The next round begins when
/// all of the last one are back but the one that held the meeting, or a heartbeat later with those that are.
class Coordinator {
 public:
  /// One message, to some launchers.
  struct Send {
    std::vector<LauncherId> to;
    LauncherMessage message;
    std::vector<Member> selves = {};  ///< of kBegin: Membership::self of each of `to`; else empty
    bool last = false;                ///< nothing follows: the connection is closed

    bool operator==(const Send&) const = default;
  };
  /// Makes one text of reports and of what it made of earlier ones, in any order: at most kMostReportBytes, and the
  /// same whatever was put together first. An empty one stands for those that are missing.
  using Gather = std::function<std::string(const std::vector<std::string>& reports)>;

  /// \param gather  what is made of the reports of a round; must not be empty
  /// \param host    the token of the launcher that holds the meeting: whoever is quicker than it waits, so that it is
  ///                the others who have to fit; empty: nobody is waited for
  Coordinator(RendezvousTimes times, SteadyTime now, Gather gather, std::string host = {})
      : times_(times),
        opened_(now),
        progress_(now),
        last_call_(times.last_call),
        gather_(std::move(gather)),
        own_(host),
        host_(std::move(host)) {}

  /// Before anybody has joined: members could go on without this meeting.
  void guard_majority() { guards_majority_ = true; }

  /// Before anybody has joined: another holder has left this behind. The job goes on from there once a launcher that
  /// took part in it joins, until when all wait; if none does for a heartbeat, a new job has the old one's name.
  void resume(const JobState& state, SteadyTime now);
  /// The same for a launcher that was a member of the last round, of the others of which enough have to come back: else
  /// the job ends after two heartbeats.
  void resume(const JobState& state, const Ballot& ballot, SteadyTime now);
  /// The job is met elsewhere, and was not begun here: all are sent on, also who comes later. Also where it is met by
  /// now.
  void send_on_to(const RendezvousAddress& place);
  /// After send_on_to(): nothing came of that meeting. All meet here again, as if nobody had come yet.
  void meet_here(SteadyTime now);
  /// Empty: here.
  [[nodiscard]] const std::optional<RendezvousAddress>& place() const { return place_; }
  /// What another holder has to know, since a round has begun.
  [[nodiscard]] JobState state() const;
  /// By this coordinator.
  [[nodiscard]] int rounds_begun() const { return rounds_begun_; }

  /// A message came. The first of a connection has to be kJoin or kInvite.
  void received(LauncherId from, const LauncherMessage& message, SteadyTime now);
  /// Where a member of the round could hold the next meeting, as long as it runs; empty: it is none, or cannot.
  [[nodiscard]] std::optional<RendezvousAddress> standby_of(LauncherId who) const;
  /// A connection ended, or was silent for too long: `how` says it in words. `heard`: its last sign of life.
  /// \param may_run  it did not say goodbye, and its end is not known either
  void left(LauncherId who, const std::string& how, SteadyTime now, SteadyTime heard, bool may_run = false);
  /// Time has passed.
  void advance(SteadyTime now);

  /// When advance() has to be called at the latest; empty: not before something happens.
  [[nodiscard]] std::optional<SteadyTime> deadline() const;

  /// What is to be sent, in order, since the last call.
  std::vector<Send> take_sends();
  /// For people where the meeting is held, since the last call: one line each.
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

  /// Nobody takes part any more, and nobody will.
  [[nodiscard]] bool over() const { return phase_ == Phase::kClosed && launchers_.empty() && untold_ == 0; }

  /// 'joined: node 'a' from 10.0.0.1 (2 workers); missing: 1 of 2 nodes'.
  [[nodiscard]] std::string who_is_there() const;

 private:
  /// In heartbeats: whoever was dead when a spare came is known to be after one.
  static constexpr int kPatienceWithSpares = 2;

  enum class Phase {
    kMeeting,   ///< launchers join
    kRunning,   ///< workers run
    kDeciding,  ///< a round is over: who is ready for the next one?
    kClosed,    ///< nobody may join
  };
  struct Launcher {
    JoinRecord record;
    bool in_round = false;  ///< of the round that runs, or was the last; else it waits for one
    int node_rank = 0;
    bool reported = false;
    bool ready = false;
    int since = 0;             ///< the first round of those in which it was without a break
    bool knows_round = false;  ///< that it has begun
    std::optional<int> vote;   ///< its node rank in the last round, where it takes up a job
    bool busy = false;         ///< its workers are being stopped: it waits for no round yet
    SteadyTime came = {};      ///< when it joined
  };

  /// Why a job has ended before it began.
  struct Failure {
    std::string run_name;
    std::string report;
    SteadyTime until;  ///< those that come are told
  };

  void knock(LauncherId from, const LauncherMessage& message, SteadyTime now);
  [[nodiscard]] static LauncherMessage sends_on(const RendezvousAddress& place);
  void invited(LauncherId from, const LauncherMessage& invitation);
  void send_back_newcomers(const std::string& why);
  void tell_successors();
  void join(LauncherId from, const LauncherMessage& message, SteadyTime now);
  void let_in(SteadyTime now);
  void go_on_from(const JobState& state, SteadyTime since);
  void take_back(Launcher& launcher, const LauncherMessage& join, SteadyTime now);
  [[nodiscard]] bool is_of_another_job(const LauncherMessage& join) const;
  [[nodiscard]] int votes() const;
  void advance_ballot(SteadyTime now);
  void take_begun(Launcher& launcher, int round);
  void end_without_majority(int nodes, int of);
  [[nodiscard]] bool all_are_back() const;
  [[nodiscard]] bool waits_for_others(SteadyTime now) const;
  [[nodiscard]] bool is_latest_connection(LauncherId from, const JoinRecord& record, SteadyTime now);
  [[nodiscard]] std::vector<LauncherId> all_launchers() const;
  [[nodiscard]] std::vector<const JoinRecord*> records_of_job() const;
  [[nodiscard]] std::optional<Rejection> rejection_of(const JoinRecord& record, SteadyTime now) const;
  void turn_away(LauncherId from, const JoinRecord& record, const Rejection& objection, SteadyTime now);
  void note(const JoinRecord& record, const std::string& what, SteadyTime now);
  void compare_command(const JoinRecord& record);
  void take_failure(LauncherId from, const JoinRecord& record, SteadyTime now);
  [[nodiscard]] bool shares_failure(LauncherId from, const JoinRecord& record);
  void look_at_spares(SteadyTime now);
  [[nodiscard]] std::optional<Rejection> objection_to_spare(const Launcher& spare) const;
  [[nodiscard]] std::optional<SteadyTime> next_step() const;
  void take_report(Launcher& launcher, const LauncherMessage& report, SteadyTime now);
  void take_ready(LauncherId from, Launcher& launcher, const LauncherMessage& message, SteadyTime now);
  void begin_when_complete(SteadyTime now);
  void begin(int round, const std::vector<LauncherId>& ids);
  void name_holder(RankAssignment& assignment, int rank) const;
  [[nodiscard]] bool is_settled_at_once(const std::vector<LauncherId>& ids) const;
  void stop(LauncherId from, const std::string& reason);
  void take_newcomers_in(SteadyTime now);
  [[nodiscard]] std::string newcomers_in_words(const std::vector<LauncherId>& ids) const;
  void end_round_when_reported(SteadyTime now);
  void begin_again_when_ready(SteadyTime now);
  void advance_meeting(SteadyTime now);
  void advance_while_short(SteadyTime now);
  [[nodiscard]] std::vector<LauncherId> next_members() const;
  [[nodiscard]] bool may_take_in() const;
  [[nodiscard]] bool all_ready() const { return ready_ == members_; }
  [[nodiscard]] bool last_call_is_over(std::size_t nodes, SteadyTime now);
  [[nodiscard]] bool first_call_is_over(std::size_t nodes, SteadyTime now);
  [[nodiscard]] SteadyTime first_call_end() const;
  [[nodiscard]] std::string substitute() const;
  void tell_spare(LauncherId who);
  [[nodiscard]] std::string refusals_in_words() const;
  [[nodiscard]] std::string missing_in_words(int spares) const;
  void tell_end(LauncherId who);
  void give_up(LauncherMessage::Kind kind, Duration after);
  void dismiss(const LauncherMessage& message);
  void leave(LauncherId who, const std::string& end, SteadyTime now);
  void tell_loss(const JoinRecord& gone, const std::string& how, SteadyTime now, SteadyTime heard);
  [[nodiscard]] bool is_called_off() const;
  Launcher take_away(LauncherId who);
  void close(const std::string& end);
  void send(LauncherId to, LauncherMessage message, bool last = false);
  void send_to_members(LauncherMessage message, LauncherId except = 0);
  [[nodiscard]] int most() const { return launchers_.empty() ? 1 : launchers_.begin()->second.record.max_nodes; }
  [[nodiscard]] int least() const { return launchers_.empty() ? 1 : launchers_.begin()->second.record.min_nodes; }

  RendezvousTimes times_;
  SteadyTime opened_;
  SteadyTime progress_;  ///< of the last table
  LastCall last_call_;
  Gather gather_;
  std::string own_;                         ///< the token of the launcher that holds the meeting
  std::string host_;                        ///< the same, until it has joined
  std::optional<RendezvousAddress> place_;  ///< where the job is met; empty: here
  std::string no_meeting_;                  ///< why those that were sent here are sent back; empty: they are not
  std::optional<JoinRecord> first_;         ///< of the job that is met elsewhere
  std::optional<std::pair<LauncherId, LauncherMessage>> invitation_;  ///< that came before the own launcher has joined
  std::unordered_set<std::string> took_part_;                         ///< tokens of those that were in a round
  std::vector<Successor> successors_;                                 ///< of the last round
  bool guards_majority_ = false;
  bool settled_ = false;  ///< the last round is
  Majority majority_;
  std::optional<Ballot> ballot_;                               ///< until a round has begun
  std::optional<JobState> left_behind_;                        ///< until a launcher of its job has joined
  std::vector<std::pair<LauncherId, LauncherMessage>> early_;  ///< came before either
  Phase phase_ = Phase::kMeeting;
  bool is_new_ = false;  ///< a launcher has joined that belonged to no job
  int round_ = 0;
  int members_ = 0;             ///< launchers in the round
  int reported_ = 0;            ///< of them, their workers' end
  int ready_ = 0;               ///< of them, for the next one
  int nodes_ = 0;               ///< with which the round began
  int informed_ = 0;            ///< of those with which it began: they know that it has
  bool stopped_ = false;        ///< a reason to stop was passed on; no round follows where that was between two rounds
  bool ends_ = false;           ///< this round stops, for nodes that came or went
  bool some_reported_ = false;  ///< in this round
  bool goes_on_ = false;        ///< of a round that is over: somebody is ready for the next one
  std::optional<SteadyTime> short_since_;  ///< all are ready, and they are too few
  std::optional<SteadyTime> resumed_;      ///< goes on with a job, of which no round has begun here
  std::vector<std::string> expected_;      ///< tokens of those that are to come back; empty: nobody knows
  int newest_ = -1;                        ///< round that one of those that came back has seen
  int rounds_begun_ = 0;
  int attempt_ = 0;      ///< of the next round, as those say that are ready
  std::string history_;  ///< the same
  std::map<LauncherId, Launcher> launchers_;
  std::unordered_map<std::string, LauncherId> ids_;  ///< by token, of those that joined and perhaps some that are gone
  std::string who_left_;                             ///< first, when there was no next round for it
  RejoinBackoff rejoin_backoff_;
  std::vector<std::string> reports_;  ///< of this round, or what was made of them
  std::size_t report_bytes_ = 0;      ///< of these
  int missing_reports_ = 0;           ///< of this round, so far
  std::vector<Send> sends_;
  std::vector<std::string> warnings_;
  std::vector<std::string> noted_;            ///< of launchers that do not take part, each once
  std::optional<SteadyTime> look_at_spares_;  ///< whether one of them can never be needed
  bool commands_differ_ = false;              ///< and that was said
  std::optional<Failure> failure_;            ///< for which the job has ended before it began
  int untold_ = 0;                            ///< nodes that have not heard of it
};

}  // namespace lrun::launcher
