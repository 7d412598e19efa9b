// In: calls of this rank and pieces of memory. Out: the same pieces at the peers, or a failure that all ranks get.
// Called by GlooOperations on the queue's thread; a watchdog looks for lost peers.
#include "runtime/collectives/gloo/channel.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "runtime/collectives/bootstrap/backoff.h"

namespace lrun::detail {
namespace {

using namespace std::chrono_literals;

/// The time for sending the last message: a peer that accepts no bytes must not delay the others for longer.
constexpr auto kLeaveTime = 1s;

/// Longer than any deadline: the watchdog ends waits.
constexpr std::chrono::milliseconds kNoLimit = 2 * kLongestTimeout;

}  // namespace

GlooChannel::GlooChannel(std::unique_ptr<GlooLink> link, GlooPeers peers, const GroupOptions& options)
    : options_(options),
      peers_(std::move(peers)),
      inbox_(static_cast<std::size_t>(options.world_size)),
      link_(std::move(link)),
      next_calls_(static_cast<std::size_t>(options.world_size)),
      leave_messages_(static_cast<std::size_t>(options.world_size)),
      watchdog_([this] { look_at_awaited(); }, [this] { expire(); }) {
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer == options_.rank) continue;
    const auto index = static_cast<std::size_t>(peer);
    leave_messages_[index] = link_->receive(peer, &inbox_[index], sizeof(LeaveMessage), GlooLane::kLeave);
    listen(peer);
  }
}

GlooChannel::~GlooChannel() = default;

GlooChannel::Batch& GlooChannel::Batch::operator=(Batch&& other) noexcept {
  if (this == &other) return *this;
  drop();
  channel_ = other.channel_;
  entries_ = std::move(other.entries_);
  other.entries_.clear();
  return *this;
}

void GlooChannel::Batch::drop() noexcept {
  if (entries_.empty()) return;
  {
    const std::lock_guard lock(channel_->mutex_);
    for (const Entry& entry : entries_) channel_->in_flight_.erase(entry.message.get());
  }
  entries_.clear();
}

void GlooChannel::begin(std::uint64_t sequence, const Part& shown) {
  shown_ = shown;
  sequence_ = sequence;
  const SteadyTime deadline = std::chrono::steady_clock::now() + options_.timeout + shown.grace;
  {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
    running_ = true;
    expired_ = false;
  }
  watchdog_.arm(deadline);
}

void GlooChannel::end() {
  watchdog_.disarm();
  const std::lock_guard lock(mutex_);
  running_ = false;
}

void GlooChannel::expire() {
  const std::lock_guard lock(mutex_);
  if (!running_ || std::chrono::steady_clock::now() < deadline_) return;  // of the operation before
  expired_ = true;
  for (GlooMessage* message : in_flight_) message->interrupt();
}

GlooChannel::Batch GlooChannel::start(std::span<const GlooPiece> pieces) { return start_on(GlooLane::kData, pieces); }

GlooChannel::Batch GlooChannel::start_on(GlooLane lane, std::span<const GlooPiece> pieces) {
  Batch batch;
  batch.channel_ = this;
  for (const auto& [peer, data, bytes, sends] : pieces) {
    if (bytes == 0) continue;
    try {
      auto message = sends ? link_->send(peer, data, bytes, lane) : link_->receive(peer, data, bytes, lane);
      const std::lock_guard lock(mutex_);
      if (expired_ || failure_) message->interrupt();
      in_flight_.insert(message.get());
      batch.entries_.push_back({peer, std::move(message)});
    } catch (const std::exception&) {
      raise_loss(peer);
    }
  }
  return batch;
}

/// \return  false at the deadline.
bool GlooChannel::wait_for(GlooMessage& message, int peer) {
  const auto await = [this](int whom) {
    const std::lock_guard lock(mutex_);
    awaited_ = whom;
    ended_looks_ = 0;
    return lost_;
  };
  await(peer);
  bool moved = false;
  try {
    moved = message.wait(kNoLimit);
  } catch (const std::exception&) {
    await(kNobody);
    raise_loss(peer);
  }
  const int lost = await(kNobody);
  if (moved) return true;
  if (const auto failure = this->failure()) failure->raise();
  if (lost == peer) raise_loss(peer);
  return false;
}

// Gloo does not report a lost connection to a caller that has received a part of its message. Nor does it notice the
// end of a peer whose own children still hold the connection.
void GlooChannel::look_at_awaited() {
  int peer = kNobody;
  {
    const std::lock_guard lock(mutex_);
    peer = awaited_;
  }
  if (peer == kNobody) return;
  const bool ended = !peers_.watch.ended(std::array{peer}).empty();
  const bool connected = is_connected(peer);
  const std::lock_guard lock(mutex_);
  if (awaited_ != peer) return;
  ended_looks_ = ended ? ended_looks_ + 1 : 0;
  constexpr int kEnough = 5;  // the messages sent before its end have arrived by then
  if (connected && ended_looks_ < kEnough) return;
  lost_ = peer;
  for (GlooMessage* message : in_flight_) message->interrupt();
}

/// Whether the connection lives, or has delivered its leave message.
bool GlooChannel::is_connected(int peer) {
  const std::lock_guard lock(leave_messages_mutex_);
  GlooMessage& words = *leave_messages_[static_cast<std::size_t>(peer)];
  words.interrupt();
  try {
    words.wait(1ms);  // returns at once, even if nothing has come
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void GlooChannel::finish(Batch& batch) {
  for (const auto& [peer, message] : batch.entries_) {
    if (!wait_for(*message, peer)) time_out({peer}, true);
  }
  batch.drop();
}

void GlooChannel::listen(int peer) {
  NextCall& next = next_calls_[static_cast<std::size_t>(peer)];
  std::unique_ptr<GlooMessage> message;
  try {
    message = link_->receive(peer, &next.posted, sizeof next.posted, GlooLane::kCall);
  } catch (const std::exception&) {
    // If the peer is lost, the next call finds out: this may have been the last one.
  }
  const std::lock_guard lock(mutex_);
  if (next.message) in_flight_.erase(next.message.get());
  if (message) in_flight_.insert(message.get());
  next.message = std::move(message);
}

/// \return  the peers that have not made the current call.
std::vector<int> GlooChannel::stop_listening() {
  {
    const std::lock_guard lock(mutex_);
    for (const NextCall& next : next_calls_) {
      if (next.message) in_flight_.erase(next.message.get());
    }
  }
  for (NextCall& next : next_calls_) next.message.reset();  // nothing writes into it any more
  std::vector<int> missing;
  for (int peer = 0; peer < world_size(); ++peer) {
    const bool called = next_calls_[static_cast<std::size_t>(peer)].posted.sequence == sequence_;
    if (peer != options_.rank && !called) missing.push_back(peer);
  }
  return missing;
}

void GlooChannel::agree(const Call& call) {
  Posted mine{sequence_, call};
  std::vector<GlooPiece> pieces;
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer != options_.rank) pieces.push_back({peer, &mine, sizeof mine, true});
  }
  Batch telling = start_on(GlooLane::kCall, pieces);
  std::vector<Call> calls(static_cast<std::size_t>(world_size()), call);
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer == options_.rank) continue;
    NextCall& next = next_calls_[static_cast<std::size_t>(peer)];
    if (!next.message) raise_loss(peer);
    if (!wait_for(*next.message, peer)) {
      const std::vector<int> missing = stop_listening();
      time_out(missing.empty() ? std::vector{peer} : missing, missing.empty());
    }
    calls[static_cast<std::size_t>(peer)] = next.posted.call;
  }
  finish(telling);
  for (int rank = 1; rank < world_size(); ++rank) {
    const Call& other = calls[static_cast<std::size_t>(rank)];
    if (other == calls[0]) continue;
    fail({Failure::Kind::kMismatch, describe_mismatch(calls[0], rank, other, sequence_, options_.ranks_above)}).raise();
  }
  for (const GlooPiece& piece : pieces) listen(piece.peer);
}

void GlooChannel::time_out(const std::vector<int>& missing, bool called) {
  const std::vector<int> names = names_of_ranks(missing, options_.ranks_above);
  fail({Failure::Kind::kTimeout, describe_timeout(shown_.operation, shown_.sequence, options_.timeout, names, called)})
      .raise();
}

/// The connection to a peer is lost: fails the group with the peer's own reason, else with the visible one.
void GlooChannel::raise_loss(int peer) {
  if (const auto failure = this->failure()) failure->raise();  // this rank closed it
  if (const auto said = received_leave(peer)) fail(*said).raise();
  const std::string what = has_ended(peer) ? " ended during " : " lost its connection during ";
  fail({Failure::Kind::kPeerLost, name_process(peer) + what + name_call()}).raise();
}

std::optional<Failure> GlooChannel::received_leave(int peer) {
  const auto index = static_cast<std::size_t>(peer);
  const std::lock_guard lock(leave_messages_mutex_);
  try {
    if (!leave_messages_[index]->wait(1ms)) return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;  // it sent nothing
  }
  const LeaveMessage& said = inbox_[index];
  if (said.kind != LeaveMessage::kLeft) return Failure{static_cast<Failure::Kind>(said.kind), said.text.data()};
  return Failure{Failure::Kind::kPeerLost, name_process(peer) + " left the group before " + name_call()};
}

/// Whether a process of this host has ended. The kernel closes its connections a moment before it counts as ended.
bool GlooChannel::has_ended(int peer) const {
  const auto& self = peers_.processes[static_cast<std::size_t>(options_.rank)];
  if (peers_.processes[static_cast<std::size_t>(peer)].pid_for(self) == 0) return false;
  for (Backoff backoff(std::chrono::steady_clock::now() + 500ms);; backoff.sleep()) {
    if (!peers_.watch.ended(std::array{peer}).empty()) return true;
    if (backoff.is_over()) return false;
  }
}

std::string GlooChannel::name_process(int peer) const {
  const ProcessIdentity& process = peers_.processes[static_cast<std::size_t>(peer)];
  return "rank " + std::to_string(options_.name_of(peer)) + " (pid " + std::to_string(process.pid) + ")";
}

Failure GlooChannel::fail(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return *failure_;
    failure_ = failure;
  }
  send_leave(static_cast<std::uint32_t>(failure.kind), failure.text);
  const std::lock_guard lock(mutex_);
  for (GlooMessage* message : in_flight_) message->interrupt();
  return failure;
}

std::optional<Failure> GlooChannel::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void GlooChannel::leave() noexcept {
  try {
    if (!failure()) send_leave(LeaveMessage::kLeft, "");
  } catch (const std::exception&) {
    // The others see the closed connection.
  }
}

void GlooChannel::send_leave(std::uint32_t kind, const std::string& text) {
  outbox_.kind = kind;
  std::memcpy(outbox_.text.data(), text.data(), std::min(text.size(), outbox_.text.size() - 1));
  std::vector<std::unique_ptr<GlooMessage>> messages;
  for (int peer = 0; peer < world_size(); ++peer) {
    try {
      if (peer != options_.rank) {
        messages.push_back(link_->send(peer, &outbox_, sizeof outbox_, GlooLane::kLeave));
      }
    } catch (const std::exception&) {
      // The peer has ended or left.
    }
  }
  const SteadyTime deadline = std::chrono::steady_clock::now() + kLeaveTime;
  for (const auto& message : messages) {
    try {
      message->wait(std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()));
    } catch (const std::exception&) {
      // Likewise.
    }
  }
  link_->close();
}

}  // namespace lrun::detail
