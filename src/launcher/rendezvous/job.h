#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "plan/launch_plan.h"
#include "rendezvous/endpoint_watch.h"
#include "rendezvous/etcd_election.h"
#include "rendezvous/launcher_link.h"
#include "rendezvous/membership.h"
#include "rendezvous/port_probe.h"
#include "rendezvous/rendezvous_server.h"
#include "rendezvous/successor_search.h"

namespace lrun::launcher {

/// What to type where every node was told to leave the endpoint of their job to others.
inline constexpr const char* kServeEndpointHint =
    "'--rdzv-conf is_host=false' needs another node of the job that serves the endpoint: leave it out on that node, or "
    "use '--rdzv-backend static' or '--rdzv-backend etcd'";

/// This launcher's part in a job of several nodes: the meeting where it is to be held here, the link to it, and the
/// socket on which this node would host the workers' store, or which keeps the port for its worker of rank 0. What the
/// launchers tell each other about their workers is text to it. Must be the last that uses the loop. One thread.
class Job {
 public:
  struct Events {
    std::function<void(const Membership&)> begun;          ///< a round: start your workers
    std::function<void(const std::string& text)> waiting;  ///< who is there and who is missing
    std::function<void(const std::string& text)> spare;    ///< the job runs, and may need us later
    /// There was no job to take part in. `hint` says what to do about it; empty: nothing special.
    std::function<void(const std::string& why, const std::string& hint)> failed;
    std::function<void(const std::string& text)> stop;  ///< what another launcher said with stopping()
    /// A node is gone: stop. Empty `node`: it held the meeting, and nothing more will come. `heard_ns`: its last sign
    /// of life, on the holder's steady clock. `spare`: the node that is to take its place; empty: none.
    std::function<void(const std::string& node, const std::string& how, std::int64_t heard_ns,
                       const std::string& spare)>
        lost;
    std::function<void(const std::string& node, const std::string& text)> resize;  ///< a node has joined: stop
    std::function<void(const std::string& report)> over;  ///< what `gather` made of all nodes' reports
    /// The job is over for us, and nothing more will come. Empty: it succeeded without us.
    std::function<void(const std::string& why)> ended;
    /// The one that held the meeting is lost, and the others meet anew: stop, and be ready for the next round. Nobody
    /// is told before a round. May be empty.
    std::function<void(const std::string& how, std::int64_t heard_ns)> adrift = {};
    /// Somebody came to the meeting that is held here and was not let in. May be empty.
    std::function<void(const std::string& line)> turned_away = {};
    /// The meeting is held here, and etcd does not take what its next holder would have to know. May be empty.
    std::function<void(const std::string& why)> not_kept = {};
    /// The job is met elsewhere, or is about to be: `text` says so. Only before a round, and while the job meets anew.
    /// May be empty.
    std::function<void(const std::string& text)> sent_on = {};
    /// The meeting is held here, and another one of the job's name has begun at the endpoint. May be empty.
    std::function<void(const std::string& text)> not_alone = {};
  };

  /// Holds the meeting if it has to, or if nobody else on this machine does; begins to connect.
  /// \param record  what is known of this node; the rest is filled in.
  /// \param gather  what is made of the reports of a round
  /// With an etcd in the plan nobody has to: one of the launchers is chosen through it, and again when that one is
  /// lost. Without one the members of a round take the meeting over when its holder is lost, as SuccessorSearch has it,
  /// and invite whoever begins to meet at the endpoint; a launcher there that was invited goes on to send others to
  /// them. \param secret  that all launchers of the job share; empty: none. \param etcd_user  NAME:PASSWORD; empty:
  /// none. \throws std::system_error  a port is taken, descriptors ran out.
  Job(EventLoop& loop, const RendezvousPlan& plan, JoinRecord record, GatherReports gather,
      std::size_t max_store_connections, std::string secret = {}, const std::string& etcd_user = {});
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// `changed` is told the connection by which the others know that this launcher lives, and -1 before it is closed.
  void on_connection(std::function<void(int connection)> changed) { connection_changed_ = std::move(changed); }

  /// Who is told. What comes right behind the first `begun` waits for the next call of this.
  void set_events(Events events);

  /// Our workers are being stopped; the others' are to be, too.
  void stopping(const std::string& text) { say(LauncherMessage::Kind::kStopping, round_, text); }
  /// None of our workers is left.
  void report(const std::string& text);
  /// For the next round. The store that this node would host begins anew, with c10d on another port: pointers to the
  /// last one are void.
  /// \param attempt  restarts used so far
  /// \param history  of the attempts, for those that join; the same on all nodes
  void ready(int attempt, const std::string& history);

  /// We leave the job, which may go on without us; nothing more is told. Only for who may_drop_out().
  void drop_out(const std::string& why);
  /// As a launcher that was killed: the others take over the meeting that is held here. Nothing more is told. Without
  /// has_successors() nothing happens.
  void vanish();
  /// We are done with the job; nothing more is told. `text`: what it came to, empty when it succeeded.
  void bye(const std::string& text) { end_with(LauncherMessage::Kind::kLeave, text); }
  /// After bye(), or with `text` instead of it. Where the meeting is held here it goes on until the others are done,
  /// too, at most for `limit`; then `left` is called by the loop.
  void leave(const std::string& text, Duration limit, std::function<void()> left);

  /// Connections of launchers that a meeting takes at the same time.
  static std::size_t most_launchers(const RendezvousPlan& plan);

  /// The workers' store, for the node that hosts it; closes ours where another node does.
  StoreServer* store_for(const Membership& membership);

  /// A last line to Events::turned_away about those that had none of their own; none where there are none.
  void tell_refusals() {
    if (holder_) holder_->tell_refusals();
  }

  /// The others can go on without us: they meet elsewhere, or can do so.
  [[nodiscard]] bool may_drop_out() const { return holder_ == nullptr || election_ != nullptr; }
  /// The meeting is held here, and the others of the round that runs take it over when this launcher is lost.
  [[nodiscard]] bool has_successors() const;
  /// The meeting is, or may be, held here, and other machines can reach it.
  [[nodiscard]] bool is_open_to_network() const { return is_open_to_network_; }
  /// While the meeting is lost that of its last holder, by whose clock the loss was told.
  [[nodiscard]] ClockOffset clock_offset() const {
    if (is_adrift_) return lost_offset_;
    return link_ ? link_->clock_offset() : ClockOffset();
  }
  [[nodiscard]] bool joined() const { return link_ && link_->joined(); }
  /// Why the meeting could not be reached so far; empty: no attempt has failed.
  [[nodiscard]] std::string trouble() const;

 private:
  void say(LauncherMessage::Kind kind, int round, const std::string& text = {});
  void end_with(LauncherMessage::Kind kind, const std::string& text);
  void open_store();
  void received(const LauncherMessage& message);
  void link_broken(const std::string& why, const std::string& hint);
  void hold_meeting_if_ours();
  void hold_meeting(int port, int listener);
  void open_link(const std::string& host, int port, Duration patience);
  void linked();

  void look_in_etcd(const std::string& etcd_user);
  [[nodiscard]] EtcdElection::Events election_events();
  void meeting_found(const LeaderRecord& holder, bool is_self, const std::optional<JobState>& state);
  void meeting_taken_away(const std::string& why);
  void meeting_lost(const std::string& why, const std::string& hint);
  void election_failed(const std::string& why, const std::string& hint);
  void job_was_over(const std::string& outcome);
  void stop_looking();
  void judge_alone();
  void keep_goodbye(const std::string& text);
  void say_goodbye();
  void link_broken_at_goodbye();
  void end_farewell();
  void tell_adrift(const std::string& how);

  /// The address of what listens here, from here.
  [[nodiscard]] std::string own_meeting() const { return own_address_.empty() ? "127.0.0.1" : own_address_; }
  void look_at_endpoint();
  void endpoint_answered(const LauncherMessage& answer, const std::string& address);
  void sent_on(const LauncherMessage& message);
  void go_to_place();
  void give_meeting_away();
  void open_standby();
  [[nodiscard]] bool may_look_again() const;
  void sent_back(const std::string& why);
  void look_again(const std::string& why, bool came_to_nothing);
  void meet_here(const std::string& why);
  [[nodiscard]] bool may_follow() const;
  void follow_successors(const std::string& why);
  void wait_as_spare(const LauncherMessage& message);

  [[nodiscard]] bool may_succeed() const;
  void find_successor(const std::string& why);
  void follow(const SuccessorSearch::Step& step);
  void hold_as_successor(const Ballot& ballot);
  void limit_search(Duration limit);
  void end_search();
  void end_succession();

  EventLoop& loop_;
  Events events_;
  RendezvousPlan plan_;
  GatherReports gather_;
  std::string secret_;
  StoreReach reach_;
  std::string own_address_;  ///< where all of the job that is here listens; empty: as reach_ says
  std::size_t max_store_connections_;
  std::unique_ptr<RendezvousServer> holder_;
  std::unique_ptr<RendezvousServer> signpost_;  ///< what was the meeting here, and sends all on to where it is now
  std::unique_ptr<RendezvousServer> vanished_;  ///< closed; its store may be known still
  bool owns_endpoint_ = false;                  ///< either of them is there
  bool rank_is_by_default_ = false;             ///< we asked for 0 because we held the meeting
  bool store_is_meeting_ = false;               ///< the workers' store is at the endpoint, which is here
  std::unique_ptr<StoreServer> store_;  ///< empty where the meeting's is the workers' store, or another node hosts it
  JoinRecord record_;                   ///< of this node
  std::function<void(int)> connection_changed_;
  std::unique_ptr<LauncherLink> link_;           ///< empty: the meeting is looked for
  std::unique_ptr<EtcdElection> election_;       ///< with an etcd
  std::string where_;                            ///< the node on which the meeting is held, as the election says
  std::string taken_away_;                       ///< why we hold the meeting no longer
  bool is_adrift_ = false;                       ///< the job has lost its meeting, and no round has begun since
  ClockOffset lost_offset_;                      ///< of the one that held it
  std::optional<std::string> report_;            ///< of this round, which is not over yet
  std::optional<LauncherMessage> ready_;         ///< for a round that has not begun
  bool is_spare_ = false;                        ///< of a job that runs, and of no round yet
  std::vector<Successor> line_;                  ///< of a spare: where it is, and who may hold the meeting next
  std::size_t turned_to_ = 0;                    ///< so many of them, since the meeting was lost
  std::optional<RendezvousAddress> told_place_;  ///< the last that Events::sent_on was told of
  std::optional<RendezvousAddress> place_;       ///< to which we were sent, until we are in a round
  std::unique_ptr<EndpointWatch> watch_;         ///< where the meeting is held here, and not at the endpoint
  EventLoop::Timer next_place_;
  Membership membership_;                      ///< of this round
  Fd standby_;                                 ///< listens where we would hold the meeting in another's place
  bool settled_ = false;                       ///< all members of this round know that it has begun
  std::optional<SuccessorSearch> succession_;  ///< while we look for who takes the meeting over
  EventLoop::Timer succession_step_;
  PortProbe probe_;
  EventLoop::Timer search_limit_;
  EventLoop::Timer judge_;
  bool is_open_to_network_ = false;
  int round_ = 0;
  bool begun_ = false;
  bool hands_over_ = false;               ///< the first `begun` was told, to events that are to be replaced
  std::vector<LauncherMessage> waiting_;  ///< that came since
  EventLoop::Timer deliver_;
  bool ended_ = false;  ///< nothing more is told
  std::function<void()> left_;
  EventLoop::Timer leave_limit_;
  std::optional<LauncherMessage> goodbye_;  ///< to be said where the job meets anew
  bool goodbye_was_said_ = false;
  EventLoop::Timer farewell_;
};

}  // namespace lrun::launcher
