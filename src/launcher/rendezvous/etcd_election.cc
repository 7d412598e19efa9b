#include "rendezvous/etcd_election.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "rendezvous/join_record.h"
#include "wire/connect.h"

namespace lrun::launcher {
namespace {

using Step = EtcdStep;

constexpr Duration kFarewell(1000);
constexpr int kRenewalsPerLease = 4;
constexpr Duration kFirstPause(50);  // between looks for a holder; doubled while it stays the same
constexpr Duration kLongestPause(500);
constexpr Duration kProbeLimit(1000);  // of a connection to a holder that may be gone

std::int64_t in_seconds(Duration time) { return std::chrono::ceil<std::chrono::seconds>(time).count(); }

}  // namespace

EtcdElection::EtcdElection(EventLoop& loop, Options options, Events events)
    : loop_(loop), options_(std::move(options)), events_(std::move(events)), client_(loop, options_.etcd) {}

/// Whatever keeps etcd from answering for so long is final.
void EtcdElection::ask(EtcdRequest request, std::function<void(const EtcdAnswer&)> answered) {
  client_.ask(std::move(request), options_.patience, [this, answered = std::move(answered)](const auto& result) {
    if (!result.trouble.empty()) return events_.failed(result.trouble, result.hint);
    if (!result.answer.error.empty() && result.answer.code != kEtcdNotFound) {
      return events_.failed("etcd says '" + result.answer.error + "'", "");
    }
    answered(result.answer);
  });
}

void EtcdElection::campaign() {
  is_campaigning_ = true;
  ask_for_leader();
}

void EtcdElection::ask_for_leader() {
  again_.cancel();
  ask(etcd_get(leader_key()), [this](const EtcdAnswer& answer) {
    const bool held = !answer.entries.empty() && answer.entries.front();
    if (held) return take_leader(*answer.entries.front());
    runs_ ? take_leases() : pause_and_ask();
  });
}

void EtcdElection::take_leader(const EtcdEntry& entry) {
  const auto record = leader_record_from_json(entry.value);
  if (!record) {
    return events_.failed("'" + leader_key() + "' in etcd is not what lrun writes",
                          "another --rdzv-id, or --rdzv-conf etcd_prefix, keeps lrun's keys apart");
  }
  if (is_loopback_address(record->address) && record->node != options_.self.node) {
    return events_.failed(
        "the meeting is held on node " + record->node + ", which only knows itself as " + record->address,
        "say with '--local-addr' where others reach a node that has its etcd on itself");
  }
  pause_ = entry.create_revision == found_revision_ ? std::clamp(pause_ * 2, kFirstPause, kLongestPause) : Duration(0);
  found_revision_ = entry.create_revision;
  leader_ = *record;
  why_deposed_.clear();
  is_campaigning_ = false;
  events_.found(*record, false, std::nullopt);
}

void EtcdElection::take_leases() {
  granted_ = steady_now();
  ask(etcd_grant(in_seconds(options_.lease)), [this](const EtcdAnswer& answer) {
    options_.lease = std::chrono::seconds(std::max<std::int64_t>(answer.seconds, 1));
    lease_ = answer.lease;
    if (lease_ == 0) return events_.failed("etcd gives no lease", "");
    ask(etcd_grant(in_seconds(kStateLife)), [this](const EtcdAnswer& second) {
      state_lease_ = second.lease;
      state_lease_ != 0 ? stand() : events_.failed("etcd gives no lease", "");
    });
  });
}

/// The state that another left behind becomes ours with the key; what answers is the same whoever wins.
void EtcdElection::stand() {
  own_ = options_.self;
  if (own_.address.empty()) own_.address = client_.own_address();
  try {
    own_.port = events_.open(own_.address);
  } catch (const std::system_error& error) {
    events_.close();
    return events_.failed(error.what(), "");
  }
  const Step get_leader{.kind = Step::Kind::kGet, .key = leader_key()};
  const Step get_state{.kind = Step::Kind::kGet, .key = state_key()};
  const Step put{.kind = Step::Kind::kPut, .key = leader_key(), .value = to_json(own_), .lease = lease_};
  ask(etcd_transaction(leader_key(), 0, {put, get_leader, get_state}, {get_leader, get_state}),
      [this](const EtcdAnswer& answer) { take_vote(answer); });
}

/// A vote that was asked for twice may have been won the first time.
void EtcdElection::take_vote(const EtcdAnswer& answer) {
  const bool whole = answer.entries.size() == 2 && answer.entries[0];
  const bool is_own = whole && answer.entries[0]->value == to_json(own_);
  if (is_own && runs_) return take_office(*answer.entries[0], answer.entries[1]);
  events_.close();
  revoke_leases();  // and with them the key, where it is ours and we want it no longer
  if (whole && !is_own) return take_leader(*answer.entries[0]);
  pause_and_ask();  // the lease was over, or the other's key has gone already
}

void EtcdElection::take_office(const EtcdEntry& own, const std::optional<EtcdEntry>& state) {
  found_revision_ = revision_ = own.create_revision;
  leader_ = own_;
  why_deposed_.clear();
  is_campaigning_ = false;
  pause_ = Duration(0);
  unpublished_.clear();
  prolong(granted_);
  renew_ = loop_.after(options_.lease / kRenewalsPerLease, [this] { renew(); });
  events_.found(own_, true, state ? job_state_from_json(state->value) : std::nullopt);
}

void EtcdElection::prolong(SteadyTime asked) {
  const auto left = std::chrono::ceil<Duration>(asked + options_.lease - steady_now());
  expiry_ = loop_.after(std::max(left, Duration::zero()), [this] {
    const std::string why = client_.trouble().empty() ? "etcd does not answer" : client_.trouble();
    depose("no word from etcd for " + format_duration(options_.lease) + ": " + why);
  });
}

void EtcdElection::renew() {
  const SteadyTime asked = steady_now();
  client_.ask(etcd_keep_alive(lease_), options_.lease / 2,
              [this, asked](const EtcdClient::Result& result) { take_renewal(result, asked); });
  client_.ask(etcd_keep_alive(state_lease_), options_.lease / 2, [](const EtcdClient::Result&) {});
  put_state();
  check_office();
}

void EtcdElection::take_renewal(const EtcdClient::Result& result, SteadyTime asked) {
  if (!leads()) return;
  const bool answered = result.trouble.empty() && result.answer.has_header;
  if (answered && result.answer.seconds == 0) return depose("etcd has given its lease up");
  if (answered) prolong(asked);
  renew_ = loop_.after(answered ? options_.lease / kRenewalsPerLease : kFirstPause, [this] { renew(); });
}

/// Somebody may have taken the key away, for whom we seem to be dead.
void EtcdElection::check_office() {
  client_.ask(etcd_get(leader_key()), options_.lease / 2, [this](const EtcdClient::Result& result) {
    if (!leads() || !result.trouble.empty() || !result.answer.has_header) return;
    const bool there = !result.answer.entries.empty() && result.answer.entries.front();
    if (!there || result.answer.entries.front()->create_revision != revision_) depose("another launcher leads now");
  });
}

void EtcdElection::depose(const std::string& why) {
  if (std::exchange(revision_, 0) == 0) return;
  renew_.cancel();
  expiry_.cancel();
  why_deposed_ = why;
  events_.deposed(why);
}

void EtcdElection::publish(const JobState& state) {
  if (!leads()) return;
  unpublished_ = json_for_etcd(state);
  ++published_;
  put_state();
}

/// An etcd that is full says so again and again: the renewal of the lease must not wait for that. What is not kept is
/// put again after it.
void EtcdElection::put_state() {
  if (unpublished_.empty() || std::exchange(is_publishing_, true)) return;
  const Step put{.kind = Step::Kind::kPut, .key = state_key(), .value = unpublished_, .lease = state_lease_};
  client_.ask(etcd_transaction(leader_key(), revision_, {put}, {}), options_.lease / (2 * kRenewalsPerLease),
              [this, number = published_](const EtcdClient::Result& result) { take_published(result, number); });
}

/// \param number  of the state that was sent: another may have come since.
void EtcdElection::take_published(const EtcdClient::Result& result, int number) {
  is_publishing_ = false;
  if (!leads()) return;
  if (result.trouble.empty() && result.answer.succeeded) {
    if (number == published_) unpublished_.clear();
    return put_state();
  }
  const std::string& why = result.trouble.empty() ? result.answer.error : result.trouble;
  if (why.empty() || std::exchange(has_warned_, true)) return;  // else not ours any more: check_office() sees it
  if (events_.not_published) events_.not_published(why);
}

void EtcdElection::campaign_again() {
  if (std::exchange(is_campaigning_, true)) return;
  leader_ ? probe() : ask_for_leader();
}

void EtcdElection::probe() {
  try {
    probe_ = begin_to_connect(leader_->address, leader_->port);
  } catch (const std::system_error&) {
    return pause_and_ask();
  }
  const auto done = [this](bool refused) {
    probed_.cancel();
    probe_limit_.cancel();
    probe_.reset();
    refused ? proved_dead() : pause_and_ask();
  };
  probed_ = loop_.on_writable(probe_.get(), [this, done] { done(connection_error(probe_.get()) == ECONNREFUSED); });
  probe_limit_ = loop_.after(kProbeLimit, [done] { done(false); });
}

void EtcdElection::proved_dead() {
  const Step remove{.kind = Step::Kind::kDelete, .key = leader_key()};
  ask(etcd_transaction(leader_key(), found_revision_, {remove}, {}), [this](const EtcdAnswer&) { ask_for_leader(); });
}

void EtcdElection::pause_and_ask() {
  again_ = loop_.after(std::max(pause_, kFirstPause), [this] { ask_for_leader(); });
}

void EtcdElection::revoke_leases() {
  for (std::int64_t* const lease : {&lease_, &state_lease_}) {
    if (*lease != 0) client_.ask(etcd_revoke(std::exchange(*lease, 0)), kFarewell, [](const EtcdClient::Result&) {});
  }
}

/// A vote that is on its way finds no lease any more.
void EtcdElection::stop() {
  client_.forget_all();
  is_publishing_ = false;
  again_.cancel();
  renew_.cancel();
  expiry_.cancel();
  probed_.cancel();
  probe_limit_.cancel();
  probe_.reset();
  revision_ = 0;
  revoke_leases();
}

/// Each question has time of its own: where etcd is slow with the first, the second is sent all the same.
void EtcdElection::resign(const std::optional<std::string>& outcome, std::function<void()> released) {
  again_.cancel();
  renew_.cancel();
  expiry_.cancel();
  const std::int64_t revision = std::exchange(revision_, 0);
  if (revision == 0) {
    again_ = loop_.after(Duration::zero(), std::move(released));
    return;
  }
  client_.forget_all();
  is_publishing_ = false;
  if (outcome) {
    const Step remove{.kind = Step::Kind::kDelete, .key = leader_key()};
    const Step put{.kind = Step::Kind::kPut,
                   .key = state_key(),
                   .value = to_json(JobState{.outcome = outcome}),
                   .lease = state_lease_};
    client_.ask(etcd_transaction(leader_key(), revision, {remove, put}, {}), kFarewell,
                [](const EtcdClient::Result&) {});
  }
  client_.ask(etcd_revoke(lease_), 2 * kFarewell,
              [released = std::move(released)](const EtcdClient::Result&) { released(); });
}

}  // namespace lrun::launcher
