// In: arrivals of this rank and failures. Out: a return when all ranks have arrived, or the group's failure on all of
// them. Called by ShmOperations on the thread that performs; futexes in the group's shared memory wake the waiters.
#include "runtime/collectives/shm/barrier.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

#include "runtime/collectives/bootstrap/backoff.h"
#include "runtime/collectives/shm/futex.h"

namespace lrun::detail {
namespace {

using namespace std::chrono_literals;

/// How soon a dead peer is noticed; each tick costs a waiter a few microseconds.
constexpr auto kTick = 20ms;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Phases and generations wrap; they are never 2^31 apart.
bool reached(std::uint32_t value, std::uint32_t target) { return static_cast<std::int32_t>(value - target) >= 0; }

/// Whether every rank of the host has a core of its own.
bool cores_suffice(int ranks) {
  const auto online = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t cores;
  const int usable = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : online;
  const bool bound = usable < online;  // each rank to its own cores, then
  return usable >= ranks || (bound && online >= ranks);
}

}  // namespace

ShmBarrier::ShmBarrier(const ShmRegion& region, int rank, std::vector<pid_t> pids, PeerWatch watch,
                       std::chrono::milliseconds timeout, std::vector<int> ranks_above)
    : region_(region),
      rank_(rank),
      pids_(std::move(pids)),
      watch_(std::move(watch)),
      timeout_(timeout),
      ranks_above_(std::move(ranks_above)),
      has_spare_cores_(cores_suffice(region.world_size())) {
  region_.cell(rank_).state.store(RankCell::kPresent);
}

void ShmBarrier::begin(std::uint64_t sequence, const Part& shown) {
  shown_ = shown;
  sequence_ = sequence;
  deadline_ = std::chrono::steady_clock::now() + timeout_ + shown.grace;
}

void ShmBarrier::arrive_and_wait(bool patient) {
  const std::uint32_t phase = ++phase_;
  // Sequentially consistent, as are the loads of all_arrived(): of the ranks that arrive together at least one sees
  // all.
  region_.cell(rank_).arrived.store(phase);
  if (all_arrived(phase)) {
    release(phase);
  } else if (!spin(phase, patient)) {
    sleep(phase);
  }
  // An operation that all ranks have completed stays complete, even if one of them has failed the group since.
  if (!complete(phase)) failure()->raise();
}

bool ShmBarrier::complete(std::uint32_t phase) const {
  return reached(region_.control().generation.load(std::memory_order_acquire), phase);
}

bool ShmBarrier::all_arrived(std::uint32_t phase) const {
  for (int rank = 0; rank < region_.world_size(); ++rank) {
    if (!reached(region_.cell(rank).arrived.load(), phase)) return false;
  }
  return true;
}

std::vector<int> ShmBarrier::missing(std::uint32_t phase) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < region_.world_size(); ++rank) {
    if (!reached(region_.cell(rank).arrived.load(), phase)) ranks.push_back(rank);
  }
  return ranks;
}

// Two ranks may both find all arrived and store the same value: the next barrier cannot complete before both are in it.
void ShmBarrier::release(std::uint32_t phase) {
  region_.control().generation.store(phase);
  ring();
}

void ShmBarrier::ring() {
  ControlBlock& control = region_.control();
  control.bell.fetch_add(1);
  if (control.sleepers.load() > 0) futex_wake_all(control.bell);
}

bool ShmBarrier::spin(std::uint32_t phase, bool patient) const {
  // With a core for every rank the others come within microseconds, or they are still computing and it will take long:
  // a long spin gains nothing, and keeps a peer waiting that the kernel has put onto the same core.
  const int pauses = has_spare_cores_ ? (patient ? 300 : 100) : 50;
  const int yields = patient ? 30 : 3;
  for (int i = 0; i < pauses; ++i) {
    if (complete(phase)) return true;
    pause();
  }
  for (int i = 0; i < yields; ++i) {
    if (complete(phase)) return true;
    ::sched_yield();
  }
  return complete(phase);
}

void ShmBarrier::sleep(std::uint32_t phase) {
  ControlBlock& control = region_.control();
  for (;;) {
    // Announced before the bell is read and the state looked at. A later change of the state sees a sleeper, and an
    // earlier change is seen here.
    control.sleepers.fetch_add(1);
    const std::uint32_t bell = control.bell.load();
    const bool wait = !complete(phase) && control.failure_state.load() == ControlBlock::kWell;
    const auto left = deadline_ - std::chrono::steady_clock::now();
    if (wait) futex_wait(control.bell, bell, std::min<std::chrono::nanoseconds>(left, kTick));
    control.sleepers.fetch_sub(1);

    if (complete(phase) || control.failure_state.load() != ControlBlock::kWell) return;
    if (all_arrived(phase)) return release(phase);  // the last one was killed before it recorded that
    check_peers(phase);
    if (std::chrono::steady_clock::now() < deadline_) continue;
    const std::vector<int> late = missing(phase);
    if (late.empty()) return release(phase);  // it came since
    time_out(late);
  }
}

void ShmBarrier::check_peers(std::uint32_t phase) {
  const std::vector<int> late = missing(phase);
  const std::string call = name_call(shown_.operation, shown_.sequence);
  for (int rank : late) {
    if (region_.cell(rank).state.load() != RankCell::kLeft || reached(region_.cell(rank).arrived.load(), phase))
      continue;
    fail({Failure::Kind::kPeerLost, name_process(rank) + " left the group before " + call}).raise();
  }
  for (int rank : watch_.ended(late)) {
    // Its last act may have been to arrive.
    if (reached(region_.cell(rank).arrived.load(), phase)) continue;
    fail({Failure::Kind::kPeerLost, name_process(rank) + " ended during " + call}).raise();
  }
}

void ShmBarrier::time_out(const std::vector<int>& late) {
  std::vector<int> not_called;
  std::ranges::copy_if(late, std::back_inserter(not_called),
                       [this](int rank) { return region_.cell(rank).sequence.load() < sequence_; });
  const bool called = not_called.empty();
  const std::vector<int> names = names_of_ranks(called ? late : not_called, ranks_above_);
  fail({Failure::Kind::kTimeout, describe_timeout(shown_.operation, shown_.sequence, timeout_, names, called)}).raise();
}

Failure ShmBarrier::fail(const Failure& failure) {
  ControlBlock& control = region_.control();
  std::uint32_t well = ControlBlock::kWell;
  if (control.failure_state.compare_exchange_strong(well, ControlBlock::reported_by(rank_))) {
    control.failure_kind = static_cast<std::uint32_t>(failure.kind);
    const std::size_t length = std::min(failure.text.size(), ControlBlock::kTextBytes - 1);
    std::memcpy(control.failure_text.data(), failure.text.data(), length);
    control.failure_text[length] = '\0';
    control.failure_state.store(ControlBlock::kFailed);
    ring();
  }
  return *this->failure();
}

std::optional<Failure> ShmBarrier::failure() {
  const ControlBlock& control = region_.control();
  if (control.failure_state.load(std::memory_order_acquire) == ControlBlock::kWell) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = reported_failure();
  return failure_;
}

/// The failure, once the failing rank has written it: that rank may be off its core for long in between.
Failure ShmBarrier::reported_failure() const {
  const ControlBlock& control = region_.control();
  for (Backoff backoff(std::chrono::steady_clock::now() + timeout_);; backoff.sleep()) {
    const int reporter = ControlBlock::reporter_of(control.failure_state.load());
    // Before the look: a failure that a rank wrote before it ended is seen.
    const bool ended = reporter >= 0 && reporter != rank_ && !watch_.ended(std::array{reporter}).empty();
    if (control.failure_state.load() == ControlBlock::kFailed) {
      return {static_cast<Failure::Kind>(control.failure_kind), control.failure_text.data()};
    }
    if (!ended && !backoff.is_over()) continue;
    return {Failure::Kind::kPeerLost, name_process(reporter) +
                                          (ended ? " ended while it reported" : " is silent about") +
                                          " the failure of the group"};
  }
}

std::string ShmBarrier::name_process(int rank) const {
  return "rank " + std::to_string(name_of_rank(rank, ranks_above_)) + " (pid " +
         std::to_string(pids_[static_cast<std::size_t>(rank)]) + ")";
}

void ShmBarrier::leave() noexcept {
  region_.cell(rank_).state.store(RankCell::kLeft);
  ring();
}

}  // namespace lrun::detail
