#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/collectives/common/call.h"

namespace lrun::detail {

/// The layout of a group's shared memory: the control block with one cell per rank, then every rank's slots, then the
/// buckets. Raise kLayoutVersion with any change here or of Call: ranks may be linked with different versions of
/// liblrun.
inline constexpr std::uint32_t kLayoutVersion = 3;

/// Two cache lines: processors fetch them in pairs.
inline constexpr std::size_t kCellAlignment = 128;

/// A call and where its memory lies, as one rank posted it.
struct PostedCall {
  Call call;
  std::int64_t bucket = -1;  ///< Sequence number of the bucket that holds all of the tensor, or -1.
  std::int64_t offset = 0;   ///< Bytes from the start of that bucket.
};

/// Written by its rank only.
struct alignas(kCellAlignment) RankCell {
  enum State : std::uint32_t { kAbsent, kPresent, kLeft };

  std::atomic<std::uint32_t> arrived{0};  ///< How many barriers the rank has entered; wraps.
  std::atomic<std::uint32_t> state{kAbsent};
  /// 1: while its process lives, it holds a lock on the byte of the shared memory whose offset is the rank.
  std::atomic<std::uint32_t> locks_byte{0};
  std::atomic<std::uint64_t> sequence{0};  ///< Of the last call it posted.
  /// The last two calls, by the parity of their sequence number: a rank may be one call ahead of a reader, not two.
  std::array<PostedCall, 2> posts{};
};

struct ControlBlock {
  static constexpr std::size_t kTextBytes = 512;
  enum FailureState : std::uint32_t { kWell, kFailed, kReporting };

  /// The state while `rank` writes the failure.
  static constexpr std::uint32_t reported_by(int rank) { return kReporting + static_cast<std::uint32_t>(rank); }
  /// That rank; negative in another state.
  static constexpr int reporter_of(std::uint32_t state) {
    return static_cast<int>(state) - static_cast<int>(kReporting);
  }

  std::uint64_t identity = 0;  ///< Random; tells this group's memory from another's.
  std::uint32_t world_size = 0;

  /// The barrier: how many are complete (wraps); on a line of their own, for everybody watches them.
  alignas(kCellAlignment) std::atomic<std::uint32_t> generation{0};
  std::atomic<std::uint32_t> failure_state{kWell};
  std::atomic<std::uint32_t> bell{0};      ///< The futex word: rung when generation or failure_state changes.
  std::atomic<std::uint32_t> sleepers{0};  ///< About how many ranks sleep on it; too many after a death, never too few.

  /// Valid from kFailed on.
  alignas(kCellAlignment) std::uint32_t failure_kind = 0;
  std::array<char, kTextBytes> failure_text{};
};

static_assert(std::is_trivially_copyable_v<PostedCall>);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::is_standard_layout_v<ControlBlock> && std::is_standard_layout_v<RankCell>);

}  // namespace lrun::detail
