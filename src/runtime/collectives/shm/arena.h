#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/collectives/common/owner_process.h"
#include "runtime/collectives/shm/shared_memory.h"

namespace lrun::detail {

/// The buckets of a group. Behind the fixed part the shared memory grows by one range per bucket, which holds one copy
/// per rank. All ranks allocate the same in the same order, so each computes the same places without communication.
///
/// Threads  any. Buckets may be freed after the group has ended.
class ShmArena : public std::enable_shared_from_this<ShmArena> {
 public:
  /// `begin`: where the fixed part ends.
  ShmArena(SharedMemory memory, std::size_t begin, int rank, int world_size);

  /// The next bucket: this rank's copy, of `bytes` zeros. Its memory is given back with the tensor,
  /// but not by a forked process, which only drops its view.
  /// \throws std::system_error  no memory, no descriptors.
  at::Tensor allocate(std::int64_t number, std::int64_t count, at::ScalarType dtype);

  /// Where a range of memory lies: the same on all ranks for the same part of the same bucket.
  struct Place {
    std::int64_t bucket = -1;  ///< The number it was allocated with; -1: outside of all buckets.
    std::int64_t offset = 0;   ///< Bytes from the bucket's first element.
  };
  [[nodiscard]] Place find(const void* data, std::size_t bytes) const;

  /// Rank `rank`'s copy of this rank's memory at `data`, which find() has found.
  [[nodiscard]] std::byte* copy_of(int rank, const void* data) const;

  /// Makes the other ranks' copies of a new bucket present; they have filled them by now.
  void touch(const at::Tensor& bucket) const;

 private:
  struct Bucket {
    std::int64_t number = 0;
    std::size_t bytes = 0;        // of one copy, as asked
    std::size_t stride = 0;       // from one copy to the next, but for the skew
    std::size_t file_offset = 0;  // of copy 0
    Mapping mapping;              // all copies
  };

  void release(const void* data) noexcept;
  [[nodiscard]] const Bucket* bucket_of(const void* data, std::size_t bytes) const;  // with mutex_ held

  const OwnerProcess owner_;
  const int rank_;
  const int world_size_;
  mutable std::mutex mutex_;
  SharedMemory memory_;
  std::size_t end_;
  std::map<const std::byte*, Bucket> buckets_;  // by the address of this rank's copy
};

}  // namespace lrun::detail
