#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "plan/rendezvous_plan.h"
#include "rendezvous/endpoint_watch.h"
#include "rendezvous/etcd_election.h"
#include "rendezvous/job_events.h"
#include "rendezvous/job_member.h"
#include "rendezvous/job_servers.h"
#include "rendezvous/launcher_link.h"
#include "rendezvous/round_part.h"
#include "rendezvous/state_campaigning.h"
#include "rendezvous/state_failing_over.h"
#include "rendezvous/state_leaving.h"
#include "rendezvous/state_linked.h"
#include "rendezvous/state_redirected.h"
#include "rendezvous/state_spare.h"

namespace lrun::launcher {

/// The data and actions that the states of a Job share. A Job is in one state; each owns its timers and probes,
/// which end with it. A state is notified when the link to the leader is made or broken. It enters the next state
/// itself, as the last thing that it does.
///
///                        kRedirect
///      Campaigning ⇄ Linked ─────→ Redirected ──→ Linked        Campaigning, Leaving: with etcd only
///                      │ ↑ kBegin
///        leader lost   ↓ │                    kSpare
///                   FailingOver     Linked ─────────→ WaitingAsSpare        every state → Leaving, Over
class JobContext {
 public:
  using State = std::variant<Linked, Campaigning, FailingOver, WaitingAsSpare, Redirected, Leaving, Over>;

  struct Options {
    RendezvousPlan plan;
    JoinRecord record;
    MergeReports merge;
    std::size_t max_store_connections = 4096;
    std::string secret = {};
  };

  JobContext(EventLoop& event_loop, Options options);
  JobContext(const JobContext&) = delete;
  JobContext& operator=(const JobContext&) = delete;

  /// The last state is gone afterwards, with what it owned.
  template <class Next, class... Arguments>
  void enter(Arguments&&... arguments) {
    state.emplace<Next>(*this, std::forward<Arguments>(arguments)...);
  }
  /// Nothing more is reported.
  [[nodiscard]] bool is_over() const {
    return std::holds_alternative<Over>(state) || std::holds_alternative<Leaving>(state);
  }

  /// A link in place of the last one. \param timeout  how long to try
  /// \param vote  the node rank of this launcher, where it votes for the other end: tried once
  void open_link(const std::string& host, int port, Duration timeout, std::optional<int> vote = {});
  /// To the endpoint, or to the rendezvous that is served here.
  void open_first_link();
  void send(LauncherMessage::Kind kind, const std::string& text = {});
  /// A message of the leader.
  void received(const LauncherMessage& message);
  /// Messages that were held back since the first round began go to the new events.
  void set_events(JobEvents& events);

  /// No leader is in reach: the end for this launcher.
  void give_up(const std::string& why, const std::string& hint);
  /// The job is over for this launcher.
  void end(const std::string& why, bool by_leader = false);
  /// The leader of a round is lost. The round stops, and each node judges what it knows. The state may be another one
  /// afterwards, as events call the Job.
  void lose_leader(const std::string& node, const std::string& how);
  /// There is no leader to gather the reports of the round: it is over with ours alone.
  void report_alone();
  /// This launcher leads elsewhere than at the endpoint: one that is started again there is to join this job.
  void watch_endpoint();
  /// Why the leader could not be reached so far; empty: no attempt has failed.
  [[nodiscard]] std::string last_error() const;
  /// Job::finish() need not wait any longer.
  void finish_soon();

  EventLoop& loop;
  const RendezvousPlan plan;
  const MergeReports merge;
  const std::string secret;
  JobServers servers;
  RoundPart part;
  JobEvents* events;
  JobMember::Questions questions;
  std::function<void(int connection)> connection_changed;  ///< outlives the link, whose end it is told
  std::unique_ptr<EtcdElection> election;                  ///< only with an etcd
  std::unique_ptr<LauncherLink> link;                      ///< empty: the leader is looked for
  std::unique_ptr<EndpointWatch> watch;
  std::optional<RendezvousAddress> told_target;  ///< of the last JobEvents::redirected since a round
  std::function<void()> finished;                ///< of Job::finish(), until it was called
  EventLoop::Timer finish;
  State state;

 private:
  void begin(const LauncherMessage& message);
  void answer(const LauncherMessage& question);
  void rejected(const LauncherMessage& message);
  void wait_as_spare(const LauncherMessage& message);
  void link_joined();
  void link_broken(const std::string& why, const std::string& hint);
  void endpoint_answered(const LauncherMessage& answer, const std::string& address);

  std::shared_ptr<int> lives_ = std::make_shared<int>();  ///< for answers that come later
  bool holds_back_ = false;                               ///< since the first kBegin, until new events are set
  std::vector<LauncherMessage> held_back_;
  EventLoop::Timer deliver_;
  EventLoop::Timer judge_;
  EventLoop::Timer give_way_;
};

}  // namespace lrun::launcher
