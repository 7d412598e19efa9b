// In: the wish to find a leader, or another one than before, and etcd's answers. Out: the leader, which may be this
// launcher, in EtcdElection::Events. Called by the states of a Job.
#include "rendezvous/etcd_election.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "rendezvous/join_record.h"

namespace lrun::launcher {
namespace {

constexpr Duration kToRevoke(1000);
constexpr Duration kFirstPause(50);  // before etcd is asked again; doubled while the leader stays the same
constexpr Duration kLongestPause(500);
constexpr Duration kProbeLimit(1000);  // of a connection to a leader that may be gone

std::int64_t in_seconds(Duration time) { return std::chrono::ceil<std::chrono::seconds>(time).count(); }

}  // namespace

EtcdElection::EtcdElection(EventLoop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      client_(loop, options_.etcd),
      term_(loop, client_,
            {.leader_key = leader_key(),
             .state_key = state_key(),
             .ended =
                 [this](const std::string& why) {
                   why_deposed_ = why;
                   events_.deposed(why);
                 },
             .not_published = events_.not_published}),
      prober_(loop) {}

/// A trouble that keeps etcd from answering for so long is final.
void EtcdElection::ask(EtcdRequest request, std::function<void(const EtcdAnswer&)> answered) {
  client_.ask(std::move(request), options_.timeout, [this, answered = std::move(answered)](const auto& result) {
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
    const bool is_led = !answer.entries.empty() && answer.entries.front();
    if (is_led) return take_leader(*answer.entries.front());
    may_lead_ ? take_leases() : pause_and_ask();
  });
}

void EtcdElection::take_leader(const EtcdEntry& entry) {
  const auto record = leader_record_from_json(entry.value);
  if (!record) {
    return events_.failed("the key '" + leader_key() + "' in etcd was not written by lrun",
                          "use another '--rdzv-id', or another folder: '--rdzv-conf etcd_prefix=FOLDER'");
  }
  if (is_loopback_address(record->address) && record->node != options_.self.node) {
    return events_.failed(
        "the leader is node " + record->node + ", which knows its own address only as " + record->address,
        "give '--local-addr' on a node that runs its own etcd");
  }
  const bool is_the_same = entry.create_revision == found_revision_;
  pause_ = is_the_same ? std::clamp(pause_ * 2, kFirstPause, kLongestPause) : Duration(0);
  found_revision_ = entry.create_revision;
  leader_ = *record;
  why_deposed_.clear();
  is_campaigning_ = false;
  events_.found(*record, false, std::nullopt);
}

void EtcdElection::take_leases() {
  leases_.asked_for = steady_now();
  ask(etcd_grant(in_seconds(options_.lease)), [this](const EtcdAnswer& answer) {
    leases_.length = options_.lease = std::chrono::seconds(std::max<std::int64_t>(answer.seconds, 1));
    leases_.key = answer.lease;
    if (leases_.key == 0) return events_.failed("etcd grants no lease", "");
    ask(etcd_grant(in_seconds(kStateLife)), [this](const EtcdAnswer& second) {
      leases_.state = second.lease;
      leases_.state != 0 ? become_candidate() : events_.failed("etcd grants no lease", "");
    });
  });
}

/// The state that another leader left behind becomes ours with the key. The answer is the same whoever wins.
void EtcdElection::become_candidate() {
  own_ = options_.self;
  if (own_.address.empty()) own_.address = client_.own_address();
  try {
    own_.port = events_.open(own_.address);
  } catch (const std::system_error& error) {
    events_.close();
    return events_.failed(error.what(), "");
  }
  const EtcdStep get_leader{.kind = EtcdStep::Kind::kGet, .key = leader_key()};
  const EtcdStep get_state{.kind = EtcdStep::Kind::kGet, .key = state_key()};
  const EtcdStep put{.kind = EtcdStep::Kind::kPut, .key = leader_key(), .value = to_json(own_), .lease = leases_.key};
  ask(etcd_transaction(leader_key(), 0, {put, get_leader, get_state}, {get_leader, get_state}),
      [this](const EtcdAnswer& answer) { take_vote(answer); });
}

void EtcdElection::take_vote(const EtcdAnswer& answer) {
  const bool is_whole = answer.entries.size() == 2 && answer.entries[0];
  // A vote that was asked for twice may have been won the first time: what counts is whose record is there.
  const bool is_own = is_whole && answer.entries[0]->value == to_json(own_);
  if (is_own && may_lead_) return win(*answer.entries[0], answer.entries[1]);
  events_.close();
  revoke_leases();  // and with them the key, where it is ours and not wanted any longer
  if (is_whole && !is_own) return take_leader(*answer.entries[0]);
  pause_and_ask();  // the lease was over, or the other's key has gone already
}

void EtcdElection::win(const EtcdEntry& own, const std::optional<EtcdEntry>& state) {
  found_revision_ = own.create_revision;
  leader_ = own_;
  why_deposed_.clear();
  is_campaigning_ = false;
  pause_ = Duration(0);
  term_.begin(leases_, own.create_revision);
  events_.found(own_, true, state ? job_state_from_json(state->value) : std::nullopt);
}

void EtcdElection::campaign_again() {
  if (std::exchange(is_campaigning_, true)) return;
  leader_ ? probe() : ask_for_leader();
}

void EtcdElection::probe() {
  prober_.connect({.host = leader_->address, .port = leader_->port, .limit = kProbeLimit},
                  [this](const SocketConnector::Result& result) {
                    result.error == ECONNREFUSED ? proved_dead() : pause_and_ask();
                  });
}

void EtcdElection::proved_dead() {
  const EtcdStep remove{.kind = EtcdStep::Kind::kDelete, .key = leader_key()};
  // Only the dead leader's key: another launcher may have created the next one meanwhile.
  ask(etcd_transaction(leader_key(), found_revision_, {remove}, {}), [this](const EtcdAnswer&) { ask_for_leader(); });
}

void EtcdElection::pause_and_ask() {
  again_ = loop_.after(std::max(pause_, kFirstPause), [this] { ask_for_leader(); });
}

void EtcdElection::revoke_leases() {
  for (std::int64_t* const lease : {&leases_.key, &leases_.state}) {
    if (*lease != 0) client_.ask(etcd_revoke(std::exchange(*lease, 0)), kToRevoke, [](const EtcdClient::Result&) {});
  }
}

void EtcdElection::stop() {
  client_.forget_all();
  (void)term_.stop();
  again_.cancel();
  prober_.cancel();
  revoke_leases();  // a vote that is on its way finds no lease any more
}

void EtcdElection::resign(const std::optional<std::string>& outcome, std::function<void()> resigned) {
  again_.cancel();
  term_.resign(outcome, std::move(resigned));
}

}  // namespace lrun::launcher
