#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/collectives/bootstrap/peer_watch.h"
#include "runtime/collectives/common/failure.h"
#include "runtime/collectives/common/perform.h"
#include "runtime/collectives/shm/region.h"

namespace lrun::detail {

/// The barrier of a shared-memory group, and the failure that its ranks share.
///
/// Arrival is one store into the rank's own cell, so that nothing is lost when a rank is killed at any instruction. A
/// rank that finds all cells arrived completes the barrier and rings the bell. Waiters spin a little, then sleep on the
/// bell. At each tick of their sleep they check whether a missing peer has ended.
///
/// Threads  begin() and arrive_and_wait() on one thread at a time; fail(), failure() and leave() on any.
class ShmBarrier {
 public:
  /// `region` outlives it. pids[r] names rank r's process in messages; `watch` knows when they end.
  /// \param ranks_above  see GroupOptions.
  ShmBarrier(const ShmRegion& region, int rank, std::vector<pid_t> pids, PeerWatch watch,
             std::chrono::milliseconds timeout, std::vector<int> ranks_above = {});

  /// Starts a call: the deadline of all its barriers runs from now, and errors name it, or the larger operation
  /// `shown`.
  void begin(Call::Operation operation, std::uint64_t sequence) { begin(sequence, Part{operation, sequence, {}}); }
  void begin(std::uint64_t sequence, const Part& shown);

  /// Enters the next barrier and returns when all ranks have. Their earlier writes are visible then.
  /// \param patient  spin long, for the caller has nothing else to do; else leave the core to the training thread soon.
  /// \throws CollectiveTimeout, PeerLost, CollectiveMismatch, Error  the group has failed.
  void arrive_and_wait(bool patient);

  /// Fails the group, unless it has failed already, and wakes all ranks. \return  the group's first failure.
  Failure fail(const Failure& failure);
  /// The group's failure, once there is one.
  [[nodiscard]] std::optional<Failure> failure();
  [[nodiscard]] const std::vector<int>& ranks_above() const { return ranks_above_; }
  /// Notifies the others that this rank makes no further calls.
  void leave() noexcept;

 private:
  [[nodiscard]] bool complete(std::uint32_t phase) const;
  [[nodiscard]] bool all_arrived(std::uint32_t phase) const;
  [[nodiscard]] std::vector<int> missing(std::uint32_t phase) const;
  void release(std::uint32_t phase);
  void ring();
  bool spin(std::uint32_t phase, bool patient) const;
  void sleep(std::uint32_t phase);
  void check_peers(std::uint32_t phase);
  [[nodiscard]] Failure reported_failure() const;  // with mutex_ held
  [[nodiscard]] std::string name_process(int rank) const;
  [[noreturn]] void time_out(const std::vector<int>& late);

  const ShmRegion& region_;
  const int rank_;
  const std::vector<pid_t> pids_;
  const PeerWatch watch_;
  const std::chrono::milliseconds timeout_;
  const std::vector<int> ranks_above_;
  const bool has_spare_cores_;

  std::uint32_t phase_ = 0;
  Part shown_;
  std::uint64_t sequence_ = 0;
  SteadyTime deadline_;

  std::mutex mutex_;
  std::optional<Failure> failure_;  // copied out of the control block once
};

}  // namespace lrun::detail
