#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/duration.h"
#include "base/event_loop.h"
#include "rendezvous/etcd_term.h"
#include "rendezvous/job_state.h"
#include "rendezvous/leader_record.h"
#include "store/etcd_client.h"
#include "store/socket_connector.h"

namespace lrun::launcher {

/// Finds the leader of a job through an etcd, or makes it this launcher: the one that creates the key
/// PREFIX/NAME/holder leads for as long as it keeps the key's lease alive. A leader that cannot reach etcd for the time
/// of its lease stops before another may begin: two never lead at a time. PREFIX/NAME/state is the state for the next
/// leader, or the outcome of the job; it outlives its leader by kStateLife.
///
/// Only the leader, and launchers that look for it, talk to etcd. Never blocks. One thread.
class EtcdElection {
 public:
  /// An election costs etcd a second or two where it has to choose a leader of its own first.
  static constexpr Duration kShortestLease{3000};
  static constexpr Duration kShortestAttempt{500};  ///< to ask etcd
  static constexpr int kAttemptsPerLease = 4;
  static constexpr Duration kStateLife{60'000};

  struct Events {
    /// This launcher is about to lead at `address`. \return the port of its rendezvous. \throws std::system_error
    std::function<std::uint16_t(const std::string& address)> open;
    std::function<void()> close;  ///< another launcher was faster: open() was in vain
    /// There is a leader. `state`: it is this launcher, and goes on from there after another one; else empty.
    std::function<void(const LeaderRecord& leader, bool is_self, const std::optional<JobState>& state)> found;
    /// This launcher leads no longer: it must end now, before another begins.
    std::function<void(const std::string& why)> deposed;
    /// Etcd cannot be used. `hint` may be empty.
    std::function<void(const std::string& why, const std::string& hint)> failed;
    /// Called once while this launcher leads: etcd does not keep the state for the next leader. May be empty.
    std::function<void(const std::string& why)> not_published = {};
  };
  struct Options {
    EtcdClient::Options etcd;
    std::string folder;         ///< of the job's keys: '/lrun/NAME'
    LeaderRecord self;          ///< `address` may be empty: the route to etcd decides; the port is that of Events::open
    Duration lease{5000};       ///< of the leader; etcd rounds it up to seconds, and to at least two
    Duration timeout{600'000};  ///< for etcd to answer a launcher that looks for the leader
  };

  EtcdElection(EventLoop& loop, Options options, Events events);
  EtcdElection(const EtcdElection&) = delete;
  EtcdElection& operator=(const EtcdElection&) = delete;

  /// Looks for the leader, and stands for election where there is none; `found`, perhaps of the same leader as before,
  /// or `failed` follows.
  void campaign();
  /// The leader that was found is out of reach. A host that refuses the connection proves that the leader is gone: then
  /// its lease need not run out. Campaigns again, unless it does so already.
  void campaign_again();
  /// From now on this launcher only looks for another leader, to report something to it, and does not become one.
  void only_observe() { may_lead_ = false; }
  /// From now on this is how long an answer may take.
  void set_timeout(Duration timeout) { options_.timeout = timeout; }

  /// This launcher leads: the state for the next leader. Tried again until etcd takes it.
  void publish(const JobState& state) { term_.publish(state); }
  /// As EtcdTerm::resign().
  void resign(const std::optional<std::string>& outcome, std::function<void()> resigned);
  /// Gives up everything that is under way, and reports nothing more. Gives the key back where this launcher has it and
  /// etcd still answers.
  void stop();

  [[nodiscard]] bool leads() const { return term_.runs(); }
  /// Host name of the leader that was found last; empty before.
  [[nodiscard]] std::string leader_node() const { return leader_ ? leader_->node : std::string(); }
  /// Why this launcher leads no longer, where it was the last leader that was found; else empty.
  [[nodiscard]] const std::string& why_deposed() const { return why_deposed_; }
  /// Why the last attempt to ask failed; empty: none has since there was an answer.
  [[nodiscard]] const std::string& last_error() const { return client_.last_error(); }
  /// There may be no etcd at all.
  [[nodiscard]] bool is_refused() const { return client_.is_refused(); }

 private:
  void ask(EtcdRequest request, std::function<void(const EtcdAnswer&)> answered);
  void ask_for_leader();
  void take_leader(const EtcdEntry& entry);
  void take_leases();
  void become_candidate();
  void take_vote(const EtcdAnswer& answer);
  void win(const EtcdEntry& own, const std::optional<EtcdEntry>& state);
  void probe();
  void proved_dead();
  void pause_and_ask();
  void revoke_leases();
  [[nodiscard]] std::string leader_key() const { return options_.folder + "/holder"; }
  [[nodiscard]] std::string state_key() const { return options_.folder + "/state"; }

  EventLoop& loop_;
  Options options_;
  Events events_;
  EtcdClient client_;
  EtcdTerm term_;
  std::optional<LeaderRecord> leader_;  ///< the last that was found
  std::int64_t found_revision_ = 0;     ///< of its key
  std::string why_deposed_;
  bool is_campaigning_ = false;  ///< `found` or `failed` is still to come
  bool may_lead_ = true;
  LeaderRecord own_;  ///< as it stands, or would, in etcd
  EtcdTerm::Leases leases_;
  Duration pause_{0};  ///< before etcd is asked again
  SocketConnector prober_;
  EventLoop::Timer again_;
};

}  // namespace lrun::launcher
