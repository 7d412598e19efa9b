#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "rendezvous/holder_election.h"
#include "store/etcd_client.h"

namespace lrun::launcher {

/// An election through an etcd: whoever creates the key PREFIX/NAME/holder holds the meeting, for as long as it keeps
/// the key's lease alive. PREFIX/NAME/state is what the next one has to know, or what the job came to; it outlives its
/// holder by kStateLife.
class ElectionInEtcd : public HolderElection {
 public:
  struct Options {
    EtcdClient::Options etcd;
    std::string folder;    ///< of the job's keys: '/lrun/NAME'
    HolderRecord self;     ///< `address` may be empty: the route to etcd decides; the port is that of Events::open
    Duration lease{5000};  ///< of who holds the meeting; etcd rounds it up to seconds, and to at least two
    Duration patience{600'000};  ///< for etcd to answer who looks for the meeting
  };

  ElectionInEtcd(EventLoop& loop, Options options, Events events);

  void look() override;
  void look_again() override;
  void only_look() override { stands_ = false; }
  void set_patience(Duration patience) override { options_.patience = patience; }
  void keep(const JobState& state) override;
  void release(const std::optional<std::string>& outcome, std::function<void()> released) override;
  void stop() override;
  [[nodiscard]] bool holds() const override { return revision_ != 0; }
  [[nodiscard]] const std::string& trouble() const override { return client_.trouble(); }

  static constexpr Duration kStateLife{60'000};

 private:
  void ask_who_holds();
  void take_holder(const EtcdEntry& entry);
  void campaign();
  void stand();
  void take_vote(const EtcdAnswer& answer);
  void take_office(const EtcdEntry& own, const std::optional<EtcdEntry>& state);
  void renew();
  void take_renewal(const EtcdClient::Result& result, SteadyTime asked);
  void check_office();
  void prolong(SteadyTime asked);
  void depose(const std::string& why);
  void put_state();
  void take_kept(const EtcdClient::Result& result, int number);
  void probe();
  void proved_dead();
  void pause_and_look();
  void revoke_leases();
  void ask(EtcdRequest request, std::function<void(const EtcdAnswer&)> answered);
  [[nodiscard]] std::string holder_key() const { return options_.folder + "/holder"; }
  [[nodiscard]] std::string state_key() const { return options_.folder + "/state"; }

  EventLoop& loop_;
  Options options_;
  Events events_;
  EtcdClient client_;
  std::optional<HolderRecord> holder_;  ///< the last that was found
  bool is_looking_ = false;             ///< what comes of it is still to be told
  bool stands_ = true;                  ///< we hold the meeting if nobody does
  std::int64_t found_revision_ = 0;     ///< of its key
  HolderRecord own_;                    ///< as it stands, or would, in etcd
  SteadyTime granted_{};                ///< when the lease was asked for: it is no older than that
  std::int64_t lease_ = 0;
  std::int64_t state_lease_ = 0;
  std::int64_t revision_ = 0;  ///< of our key, while we hold the meeting
  std::string unkept_;         ///< the state that etcd has to take; empty: it has
  int states_ = 0;             ///< that were to be kept so far
  bool is_keeping_ = false;    ///< one is on its way
  bool has_warned_ = false;
  Duration pause_{0};
  Fd probe_;
  EventLoop::Watch probed_;
  EventLoop::Timer probe_limit_;
  EventLoop::Timer again_;
  EventLoop::Timer renew_;
  EventLoop::Timer expiry_;
};

}  // namespace lrun::launcher
