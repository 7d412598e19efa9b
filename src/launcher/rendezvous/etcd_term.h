#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "rendezvous/job_state.h"
#include "store/etcd_client.h"

namespace lrun::launcher {

/// The time for which this launcher leads its job, as etcd sees it: the lease of its key is kept alive, and the state
/// for the next leader is kept under another key. Where etcd cannot be reached for the time of the lease, the term ends
/// before another launcher can win. One thread.
class EtcdTerm {
 public:
  struct Leases {
    std::int64_t key = 0;    ///< of the leader's key; 0: none
    std::int64_t state = 0;  ///< of the state, which outlives its leader
    Duration length{0};      ///< of the first
    SteadyTime asked_for{};  ///< the first is no older than that
  };
  struct Options {
    std::string leader_key;
    std::string state_key;
    /// This launcher leads no longer: it must end now, before another begins.
    std::function<void(const std::string& why)> ended;
    /// Called once: etcd does not take the state. May be empty.
    std::function<void(const std::string& why)> not_published;
  };

  /// \param client  must live longer, or forget_all()
  EtcdTerm(EventLoop& loop, EtcdClient& client, Options options);

  /// \param revision  of our key
  void begin(const Leases& leases, std::int64_t revision);
  [[nodiscard]] bool runs() const { return revision_ != 0; }
  /// Tried again until etcd takes it, or another state follows. Nothing happens where no term runs.
  void publish(const JobState& state);

  /// Ends it. \return false: none ran
  bool stop();
  /// Ends it at once for the others. \param outcome  of a job that is over, which is left behind; empty: another
  /// launcher leads it next. `resigned` is called by the loop, soon, whether etcd answers or not.
  void resign(const std::optional<std::string>& outcome, std::function<void()> resigned);

 private:
  void renew();
  void take_renewal(const EtcdClient::Result& result, SteadyTime asked);
  void check_key();
  void prolong(SteadyTime asked);
  void depose(const std::string& why);
  void put_state();
  void take_published(const EtcdClient::Result& result, int number);

  EventLoop& loop_;
  EtcdClient& client_;
  Options options_;
  Leases leases_;
  std::int64_t revision_ = 0;  ///< 0: no term runs
  std::string unpublished_;    ///< empty: etcd has the last state
  int states_ = 0;             ///< that were to be published so far
  bool is_publishing_ = false;
  bool has_warned_ = false;
  EventLoop::Timer renew_;
  EventLoop::Timer expiry_;
};

}  // namespace lrun::launcher
