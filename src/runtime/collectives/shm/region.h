#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/collectives/shm/control_block.h"
#include "runtime/collectives/shm/shared_memory.h"

namespace lrun::detail {

/// The fixed part of a group's shared memory as one process sees it: control block, cells and slots.
///
/// A rank writes its own slots only; the others read them after a barrier. Small slots take the whole message of a
/// short call; chunk slots take a long one piece by piece. There are two of each, so that one is filled while the other
/// is read.
class ShmRegion {
 public:
  static constexpr std::size_t kSmallBytes = 64 << 10;
  static constexpr std::size_t kChunkBytes = 256 << 10;  ///< Small enough to stay in the second-level cache.

  ShmRegion() = default;
  /// Makes the control block in new shared memory, which it resizes.
  static ShmRegion create(SharedMemory& memory, int world_size, std::uint64_t identity);
  /// The region that create() made. \throws std::runtime_error  it is another group's.
  static ShmRegion open(const SharedMemory& memory, int world_size, std::uint64_t identity);

  /// Brings the slots of one rank into `memory`, which this is a view of.
  /// \throws std::system_error  there is no room for them.
  void populate_slots(const SharedMemory& memory, int rank) const;

  [[nodiscard]] static std::size_t bytes(int world_size);

  [[nodiscard]] int world_size() const { return world_size_; }
  /// The longest message for the small slots. Every rank reads all of them, which costs more the more ranks there are.
  [[nodiscard]] std::size_t short_bytes() const {
    return std::min(kSmallBytes, 2 * kSmallBytes / static_cast<std::size_t>(world_size_));
  }
  [[nodiscard]] ControlBlock& control() const;
  [[nodiscard]] RankCell& cell(int rank) const;
  [[nodiscard]] std::byte* small_slot(int rank, std::uint64_t parity) const;
  [[nodiscard]] std::byte* chunk_slot(int rank, std::uint64_t parity) const;

 private:
  ShmRegion(Mapping mapping, int world_size) : mapping_(std::move(mapping)), world_size_(world_size) {}

  Mapping mapping_;
  int world_size_ = 0;
};

}  // namespace lrun::detail
