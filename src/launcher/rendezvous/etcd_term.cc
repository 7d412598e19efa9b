// In: a won election, states of the job, and etcd's answers. Out: requests that keep the lease and the state, or that
// the term has ended. Called by EtcdElection.
#include "rendezvous/etcd_term.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lrun::launcher {
namespace {

constexpr int kRenewalsPerLease = 4;
constexpr Duration kPauseOfRenewal(50);
constexpr Duration kToResign(1000);

}  // namespace

EtcdTerm::EtcdTerm(EventLoop& loop, EtcdClient& client, Options options)
    : loop_(loop), client_(client), options_(std::move(options)) {}

void EtcdTerm::begin(const Leases& leases, std::int64_t revision) {
  leases_ = leases;
  revision_ = revision;
  unpublished_.clear();
  prolong(leases_.asked_for);
  renew_ = loop_.after(leases_.length / kRenewalsPerLease, [this] { renew(); });
}

void EtcdTerm::prolong(SteadyTime asked) {
  const auto left = std::chrono::ceil<Duration>(asked + leases_.length - steady_now());
  expiry_ = loop_.after(std::max(left, Duration::zero()), [this] {
    const std::string why = client_.last_error().empty() ? "etcd does not answer" : client_.last_error();
    depose("no answer from etcd for " + format_duration(leases_.length) + ": " + why);
  });
}

void EtcdTerm::renew() {
  const SteadyTime asked = steady_now();
  client_.ask(etcd_keep_alive(leases_.key), leases_.length / 2,
              [this, asked](const EtcdClient::Result& result) { take_renewal(result, asked); });
  client_.ask(etcd_keep_alive(leases_.state), leases_.length / 2, [](const EtcdClient::Result&) {});
  put_state();
  check_key();
}

void EtcdTerm::take_renewal(const EtcdClient::Result& result, SteadyTime asked) {
  if (!runs()) return;
  const bool answered = result.trouble.empty() && result.answer.has_header;
  if (answered && result.answer.seconds == 0) return depose("its lease in etcd has expired");
  if (answered) prolong(asked);
  renew_ = loop_.after(answered ? leases_.length / kRenewalsPerLease : kPauseOfRenewal, [this] { renew(); });
}

/// Another launcher may have removed the key, because this one seemed dead to it.
void EtcdTerm::check_key() {
  client_.ask(etcd_get(options_.leader_key), leases_.length / 2, [this](const EtcdClient::Result& result) {
    if (!runs() || !result.trouble.empty() || !result.answer.has_header) return;
    const bool is_there = !result.answer.entries.empty() && result.answer.entries.front();
    if (!is_there || result.answer.entries.front()->create_revision != revision_) depose("another launcher leads now");
  });
}

void EtcdTerm::depose(const std::string& why) {
  if (stop()) options_.ended(why);
}

bool EtcdTerm::stop() {
  renew_.cancel();
  expiry_.cancel();
  is_publishing_ = false;
  return std::exchange(revision_, 0) != 0;
}

void EtcdTerm::publish(const JobState& state) {
  if (!runs()) return;
  unpublished_ = json_for_etcd(state);
  ++states_;
  put_state();
}

/// An etcd that is full refuses it again and again, and the renewal of the lease must not wait for that. A state that
/// was refused is put again after the renewal.
void EtcdTerm::put_state() {
  if (unpublished_.empty() || std::exchange(is_publishing_, true)) return;
  const EtcdStep put{
      .kind = EtcdStep::Kind::kPut, .key = options_.state_key, .value = unpublished_, .lease = leases_.state};
  // The key's revision guards the state: a leader that was deposed cannot write over that of the next one.
  client_.ask(etcd_transaction(options_.leader_key, revision_, {put}, {}), leases_.length / (2 * kRenewalsPerLease),
              [this, number = states_](const EtcdClient::Result& result) { take_published(result, number); });
}

/// \param number  of the state that was sent: another may have come since.
void EtcdTerm::take_published(const EtcdClient::Result& result, int number) {
  is_publishing_ = false;
  if (!runs()) return;
  if (result.trouble.empty() && result.answer.succeeded) {
    if (number == states_) unpublished_.clear();
    return put_state();
  }
  const std::string& why = result.trouble.empty() ? result.answer.error : result.trouble;
  // Without an error the key is ours no more, which check_key() sees.
  if (why.empty() || std::exchange(has_warned_, true)) return;
  if (options_.not_published) options_.not_published(why);
}

void EtcdTerm::resign(const std::optional<std::string>& outcome, std::function<void()> resigned) {
  const std::int64_t revision = revision_;
  if (!stop()) {
    renew_ = loop_.after(Duration::zero(), std::move(resigned));
    return;
  }
  client_.forget_all();
  if (outcome) {
    const EtcdStep remove{.kind = EtcdStep::Kind::kDelete, .key = options_.leader_key};
    const EtcdStep put{.kind = EtcdStep::Kind::kPut,
                       .key = options_.state_key,
                       .value = to_json(JobState{.outcome = outcome}),
                       .lease = leases_.state};
    client_.ask(etcd_transaction(options_.leader_key, revision, {remove, put}, {}), kToResign,
                [](const EtcdClient::Result&) {});
  }
  // Each request has time of its own: where etcd is slow with the first, the second is sent all the same.
  client_.ask(etcd_revoke(leases_.key), 2 * kToResign,
              [resigned = std::move(resigned)](const EtcdClient::Result&) { resigned(); });
}

}  // namespace lrun::launcher
