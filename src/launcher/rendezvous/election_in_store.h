#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "base/event_loop.h"
#include "rendezvous/holder_election.h"
#include "rendezvous/meeting_record.h"
#include "rendezvous/port_probe.h"
#include "store/compare_set_client.h"

namespace lrun::launcher {

/// An election through a TCPStore that others serve, which knows neither leases nor how old a value is. Who holds the
/// meeting writes its MeetingRecord anew, with another beat, several times in the time of its lease. Who looks for it
/// replaces the very record that it saw where that one has not changed for longer than a lease by its own clock, or
/// where the holder's port proves that it is gone. A holder counts its lease from before the last write that is known
/// to be done: it lets go before anybody can have seen that write for so long.
///
/// What the job came to stays for as long as the store does. A store that was emptied gets the record of the meeting
/// that is held again.
class ElectionInStore : public HolderElection {
 public:
  struct Options {
    CompareSetClient::Options store;
    std::string key;       ///< of the job's record: '/lrun/NAME/meeting'
    HolderRecord self;     ///< `address` may be empty: the route to the store decides; the port is that of Events::open
    Duration lease{5000};  ///< the same on all launchers of a job
    Duration patience{30'000};  ///< for the store to answer who looks for the meeting
  };

  ElectionInStore(EventLoop& loop, Options options, Events events);

  void look() override;
  void look_again() override;
  void only_look() override { stands_ = false; }
  void set_patience(Duration patience) override { options_.patience = patience; }
  void keep(const JobState& state) override;
  void release(const std::optional<std::string>& outcome, std::function<void()> released) override;
  void stop() override;
  [[nodiscard]] bool holds() const override { return holds_; }
  [[nodiscard]] const std::string& trouble() const override { return client_.trouble(); }

 private:
  using Result = CompareSetClient::Result;

  void ask_who_holds();
  void take_value(const std::string& value);
  void take_holder(const HolderRecord& holder);
  void stand();
  void take_vote(const std::string& value, SteadyTime asked);
  void take_office(SteadyTime asked);
  void renew(const std::string& expected);
  void take_renewal(const Result& result, const std::string& expected, const std::string& sent, SteadyTime asked);
  [[nodiscard]] bool is_ours(const std::string& value) const;
  void prolong(SteadyTime asked);
  void depose(const std::string& why);
  void fail(const std::string& why, const std::string& hint = {});
  void pause_and_look();
  void let_go();
  void write_last(const std::string& expected, const MeetingRecord& last, const std::function<void()>& written);

  EventLoop& loop_;
  Options options_;
  Events events_;
  CompareSetClient client_;
  PortProbe probe_;
  bool is_looking_ = false;             ///< what comes of it is still to be told
  bool stands_ = true;                  ///< we hold the meeting if nobody does
  std::optional<HolderRecord> holder_;  ///< the last that was found
  std::string seen_;                    ///< the last value; empty: there was none
  SteadyTime seen_at_{};                ///< since when it has not changed, as far as we know
  std::string dead_;                    ///< the token of a holder that is proved to be gone
  MeetingRecord own_;                   ///< the one that was sent last, or is to be sent next
  std::string written_;                 ///< the last of ours that is known to stand in the store
  bool is_voting_ = false;              ///< a record of ours is on its way that makes us the holder
  bool holds_ = false;
  bool is_renewing_ = false;
  bool has_news_ = false;  ///< own_.state is to be written
  Duration pause_{0};
  EventLoop::Timer again_;
  EventLoop::Timer renew_;
  EventLoop::Timer expiry_;
};

}  // namespace lrun::launcher
