#include "rendezvous/election_in_store.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "rendezvous/join_record.h"

namespace lrun::launcher {
namespace {

constexpr Duration kStoreFarewell(2000);

}  // namespace

ElectionInStore::ElectionInStore(EventLoop& loop, Options options, Events events)
    : loop_(loop),
      options_(std::move(options)),
      events_(std::move(events)),
      client_(loop, options_.store),
      probe_(loop) {}

void ElectionInStore::fail(const std::string& why, const std::string& hint) {
  is_looking_ = false;
  events_.failed(why, hint);
}

void ElectionInStore::look() {
  is_looking_ = true;
  ask_who_holds();
}

void ElectionInStore::ask_who_holds() {
  again_.cancel();
  client_.read(options_.key, options_.patience, [this](const Result& result) {
    result.trouble.empty() ? take_value(result.value) : fail(result.trouble);
  });
}

void ElectionInStore::take_value(const std::string& value) {
  if (value == CompareSetClient::kAbsent) {
    seen_.clear();
    return stands_ ? stand() : pause_and_look();
  }
  const auto record = meeting_record_from_json(value);
  if (!record) {
    return fail("'" + options_.key + "' in the store at " + options_.store.host + " port " +
                    std::to_string(options_.store.port) + " is not what lrun writes",
                "another '--rdzv-id' keeps lrun's keys apart");
  }
  if (record->is_over()) {
    is_looking_ = false;
    return events_.over(*record->state->outcome);
  }
  if (std::exchange(seen_, value) != value) seen_at_ = steady_now();
  // Longer than a lease, by the rate at which two clocks may differ, and more.
  const bool is_silent = steady_now() - seen_at_ >= options_.lease + options_.lease / kRenewalsPerLease;
  const bool is_held = record->holder && record->holder->token != dead_ && !is_silent;
  if (is_held) return take_holder(*record->holder);
  stands_ ? stand() : pause_and_look();
}

void ElectionInStore::take_holder(const HolderRecord& holder) {
  if (is_loopback_address(holder.address) && holder.node != options_.self.node) {
    return fail("the meeting is held on node " + holder.node + ", which only knows itself as " + holder.address,
                "say with '--local-addr' where others reach a node that has the store on itself");
  }
  pause_ = holder_ == holder ? std::clamp(pause_ * 2, kFirstPause, kLongestPause) : Duration(0);
  holder_ = holder;
  is_looking_ = false;
  events_.found(holder, false, std::nullopt);
}

/// The state that another left behind becomes ours with its record.
void ElectionInStore::stand() {
  const auto before = meeting_record_from_json(seen_).value_or(MeetingRecord());
  own_ = {.holder = options_.self, .beat = before.beat + 1, .state = before.state};
  if (own_.holder->address.empty()) own_.holder->address = client_.own_address();
  try {
    own_.holder->port = events_.open(own_.holder->address);
  } catch (const std::system_error& error) {
    events_.close();
    return fail(error.what());
  }
  is_voting_ = true;
  client_.compare_set(options_.key, seen_, to_json(own_), options_.patience,
                      [this, asked = steady_now()](const Result& result) {
                        is_voting_ = false;
                        if (result.trouble.empty()) return take_vote(result.value, asked);
                        events_.close();
                        fail(result.trouble);
                      });
}

void ElectionInStore::take_vote(const std::string& value, SteadyTime asked) {
  const bool is_own = value == to_json(own_);
  if (is_own && stands_) return take_office(asked);
  events_.close();
  if (is_own) let_go();
  // With the value that was expected the store says that there is none any more.
  is_own || value == seen_ ? pause_and_look() : take_value(value);
}

void ElectionInStore::take_office(SteadyTime asked) {
  written_ = to_json(own_);
  holder_ = own_.holder;
  holds_ = true;
  is_looking_ = is_renewing_ = has_news_ = false;
  pause_ = Duration(0);
  dead_.clear();
  prolong(asked);
  renew_ = loop_.after(options_.lease / kRenewalsPerLease, [this] { renew(written_); });
  events_.found(*own_.holder, true, own_.state);
}

void ElectionInStore::prolong(SteadyTime asked) {
  const auto left = std::chrono::floor<Duration>(asked + options_.lease - steady_now());
  expiry_ = loop_.after(std::max(left, Duration::zero()), [this] {
    const std::string why = client_.trouble().empty() ? "it does not answer" : client_.trouble();
    depose("no word from the store for " + format_duration(options_.lease) + ": " + why);
  });
}

void ElectionInStore::renew(const std::string& expected) {
  is_renewing_ = true;
  has_news_ = false;
  ++own_.beat;
  const std::string sent = to_json(own_);
  client_.compare_set(options_.key, expected, sent, options_.lease / 2,
                      [this, expected, sent, asked = steady_now()](const Result& result) {
                        is_renewing_ = false;
                        if (holds_) take_renewal(result, expected, sent, asked);
                      });
}

/// An answer that was lost is no reason to let go: the record in the store is still ours, with another beat.
void ElectionInStore::take_renewal(const Result& result, const std::string& expected, const std::string& sent,
                                   SteadyTime asked) {
  if (!result.trouble.empty()) {
    renew_ = loop_.after(kFirstPause, [this] { renew(written_); });
    return;
  }
  if (result.value == sent) {
    written_ = sent;
    prolong(asked);
    const Duration pause = has_news_ ? Duration::zero() : options_.lease / kRenewalsPerLease;
    renew_ = loop_.after(pause, [this] { renew(written_); });
    return;
  }
  if (result.value == expected) return renew("");  // there is no such key any more
  if (!is_ours(result.value)) return depose("another launcher holds it now");
  written_ = result.value;
  renew(written_);
}

bool ElectionInStore::is_ours(const std::string& value) const {
  const auto record = meeting_record_from_json(value);
  return record && record->holder && own_.holder && record->holder->token == own_.holder->token;
}

void ElectionInStore::depose(const std::string& why) {
  if (!std::exchange(holds_, false)) return;
  renew_.cancel();
  expiry_.cancel();
  client_.forget_all();
  events_.deposed(why);
}

void ElectionInStore::keep(const JobState& state) {
  if (!holds_) return;
  own_.state = state;
  has_news_ = true;
  if (is_renewing_) return;
  renew_ = loop_.after(Duration::zero(), [this] { renew(written_); });
}

void ElectionInStore::look_again() {
  if (std::exchange(is_looking_, true)) return;
  if (!holder_) return ask_who_holds();
  probe_.ask(holder_->address, holder_->port, kProbeLimit, [this](bool refused) {
    if (!refused) return pause_and_look();
    dead_ = holder_->token;
    ask_who_holds();
  });
}

void ElectionInStore::pause_and_look() {
  again_ = loop_.after(std::max(pause_, kFirstPause), [this] { ask_who_holds(); });
}

void ElectionInStore::stop() {
  client_.forget_all();
  probe_.cancel();
  again_.cancel();
  renew_.cancel();
  expiry_.cancel();
  if (holds_ || is_voting_) let_go();
  holds_ = is_voting_ = false;
}

/// Whoever comes next need not wait for the end of our lease.
void ElectionInStore::let_go() {
  const std::string expected = holds_ ? written_ : to_json(own_);
  write_last(expected, {.beat = own_.beat + 1, .state = own_.state}, [] {});
}

/// What was on its way before may have come to the store or not.
void ElectionInStore::write_last(const std::string& expected, const MeetingRecord& last,
                                 const std::function<void()>& written) {
  const std::string sent = to_json(last);
  client_.compare_set(options_.key, expected, sent, kStoreFarewell,
                      [this, expected, last, sent, written](const Result& result) {
                        const bool is_done = !result.trouble.empty() || result.value == sent;
                        if (!is_done && result.value == expected) return write_last("", last, written);
                        if (!is_done && is_ours(result.value)) return write_last(result.value, last, written);
                        written();
                      });
}

/// A job of which no round has begun is not over: who comes later begins it.
void ElectionInStore::release(const std::optional<std::string>& outcome, std::function<void()> released) {
  renew_.cancel();
  expiry_.cancel();
  again_ = loop_.after(holds_ ? kStoreFarewell : Duration::zero(), released);
  if (!std::exchange(holds_, false)) return;
  client_.forget_all();
  MeetingRecord last{.beat = own_.beat + 1, .state = own_.state};
  if (outcome && last.state) last.state = JobState{.outcome = outcome};
  write_last(written_, last, [this, released = std::move(released)] {
    again_.cancel();
    released();
  });
}

}  // namespace lrun::launcher
