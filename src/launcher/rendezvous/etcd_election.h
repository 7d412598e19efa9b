#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "rendezvous/job_state.h"
#include "rendezvous/leader_record.h"
#include "store/etcd_client.h"

namespace lrun::launcher {

/// Finds the launcher that leads the meeting of a job through an etcd, or makes it this one: whoever creates the key
/// PREFIX/NAME/holder leads the meeting, for as long as it keeps the key's lease alive. One that cannot reach etcd for
/// the time of its lease stops to hold the meeting before another may, so that no two hold it at a time.
/// PREFIX/NAME/state is what the next one has to know, or what the job came to; it outlives its holder by kStateLife.
///
/// Nobody talks to etcd but who leads the meeting or looks for it. Never blocks. One thread.
class EtcdElection {
 public:
  /// An election costs etcd a second or two where it has to choose a leader of its own first.
  static constexpr Duration kShortestLease{3000};
  static constexpr Duration kShortestAttempt{500};  ///< to ask etcd
  static constexpr int kAttemptsPerLease = 4;
  static constexpr Duration kStateLife{60'000};

  struct Events {
    /// We are about to hold the meeting at `address`. \return its port. \throws std::system_error
    std::function<std::uint16_t(const std::string& address)> open;
    std::function<void()> close;  ///< another launcher was faster: open() was in vain
    /// The meeting is there. `state`: we hold it, and take it over from another; else empty.
    std::function<void(const LeaderRecord& leader, bool is_self, const std::optional<JobState>& state)> found;
    /// We hold it no longer: it must end now, before another begins.
    std::function<void(const std::string& why)> deposed;
    /// Etcd cannot be used. `hint` may be empty.
    std::function<void(const std::string& why, const std::string& hint)> failed;
    /// Told once while we hold the meeting: what the next holder has to know is not kept. May be empty.
    std::function<void(const std::string& why)> not_published = {};
  };
  struct Options {
    EtcdClient::Options etcd;
    std::string folder;    ///< of the job's keys: '/lrun/NAME'
    LeaderRecord self;     ///< `address` may be empty: the route to etcd decides; the port is that of Events::open
    Duration lease{5000};  ///< of who leads the meeting; etcd rounds it up to seconds, and to at least two
    Duration patience{600'000};  ///< for etcd to answer who looks for the meeting
  };

  EtcdElection(EventLoop& loop, Options options, Events events);

  EtcdElection(const EtcdElection&) = delete;
  EtcdElection& operator=(const EtcdElection&) = delete;

  /// Begins to look; `found`, perhaps of the same holder as before, or `failed` follows.
  void campaign();
  /// The one that was found is out of reach. A host that lives and on which nobody listens there any more proves that
  /// it is gone: then nobody waits for its lease. Looks again, unless it does so already.
  void campaign_again();

  /// From now on we look for another's meeting, and do not hold one: only to say something there.
  void only_observe() { runs_ = false; }
  /// From now on this is how long an answer may take.
  void set_patience(Duration patience) { options_.patience = patience; }

  /// We hold the meeting: what the next holder has to know. Tried again until it is kept.
  void publish(const JobState& state);

  /// We are done. \param outcome  of a job that is over, which is left behind for those that were cut off from it;
  /// empty: another launcher takes the meeting over. `released` is called by the loop, soon, whether there is an answer
  /// or not.
  void resign(const std::optional<std::string>& outcome, std::function<void()> released);
  /// Whatever is under way comes to nothing, and nothing more is told; what we hold is given back where etcd still
  /// answers.
  void stop();

  [[nodiscard]] bool leads() const { return revision_ != 0; }
  /// Host name of the leader that was found last; empty before.
  [[nodiscard]] std::string leader_node() const { return leader_ ? leader_->node : std::string(); }
  /// Why this launcher, which was the last leader that was found, is it no more; empty: it was not, or still is.
  [[nodiscard]] const std::string& why_deposed() const { return why_deposed_; }
  /// Why the last attempt to ask failed; empty: none has since there was an answer.
  [[nodiscard]] const std::string& trouble() const { return client_.trouble(); }

 private:
  void ask_for_leader();
  void take_leader(const EtcdEntry& entry);
  void take_leases();
  void stand();
  void take_vote(const EtcdAnswer& answer);
  void take_office(const EtcdEntry& own, const std::optional<EtcdEntry>& state);
  void renew();
  void take_renewal(const EtcdClient::Result& result, SteadyTime asked);
  void check_office();
  void prolong(SteadyTime asked);
  void depose(const std::string& why);
  void put_state();
  void take_published(const EtcdClient::Result& result, int number);
  void probe();
  void proved_dead();
  void pause_and_ask();
  void revoke_leases();
  void ask(EtcdRequest request, std::function<void(const EtcdAnswer&)> answered);
  [[nodiscard]] std::string leader_key() const { return options_.folder + "/holder"; }
  [[nodiscard]] std::string state_key() const { return options_.folder + "/state"; }

  EventLoop& loop_;
  Options options_;
  Events events_;
  EtcdClient client_;
  std::optional<LeaderRecord> leader_;  ///< the last that was found
  bool is_campaigning_ = false;         ///< what comes of it is still to be told
  bool runs_ = true;                    ///< we hold the meeting if nobody does
  std::int64_t found_revision_ = 0;     ///< of its key
  LeaderRecord own_;                    ///< as it stands, or would, in etcd
  SteadyTime granted_{};                ///< when the lease was asked for: it is no older than that
  std::int64_t lease_ = 0;
  std::int64_t state_lease_ = 0;
  std::int64_t revision_ = 0;   ///< of our key, while we hold the meeting
  std::string unpublished_;     ///< the state that etcd has to take; empty: it has
  int published_ = 0;           ///< that were to be kept so far
  bool is_publishing_ = false;  ///< one is on its way
  bool has_warned_ = false;
  std::string why_deposed_;
  Duration pause_{0};
  Fd probe_;
  EventLoop::Watch probed_;
  EventLoop::Timer probe_limit_;
  EventLoop::Timer again_;
  EventLoop::Timer renew_;
  EventLoop::Timer expiry_;
};

}  // namespace lrun::launcher
