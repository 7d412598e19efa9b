#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collectives/common/perform.h"
#include "runtime/collectives/shm/arena.h"
#include "runtime/collectives/shm/barrier.h"
#include "runtime/collectives/shm/region.h"

namespace lrun::detail {

/// One rank's part of the operations of a shared-memory group.
///
/// All ranks choose the same of three ways, from the calls that all posted:
///   short      the message goes into the small slot before the first barrier, and every rank reads all of them: one
///              barrier
///   direct     all ranks passed the same part of the same bucket: no copy; each rank reduces its share of all copies
///   piecewise  any other memory: through the chunk slots, one barrier a chunk
///
/// Threads  perform() on one thread at a time.
class ShmOperations {
 public:
  /// All outlive it.
  ShmOperations(const ShmRegion& region, ShmBarrier& barrier, ShmArena& arena, int rank);

  /// Takes part in operation `sequence`, from posting the call to its end.
  /// \param post     for kAllocateBucket the new bucket is put into post.output.
  /// \param patient  see ShmBarrier::arrive_and_wait().
  /// \throws what ShmBarrier::arrive_and_wait() throws; std::system_error when a bucket finds no memory.
  void perform(Post& post, std::uint64_t sequence, bool patient);

 private:
  struct Share {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };

  void publish(const Post& post, std::uint64_t sequence);
  [[nodiscard]] const PostedCall& posted(int rank, std::uint64_t sequence) const;
  void compare_calls(std::uint64_t sequence);
  [[nodiscard]] bool is_short(const Post& post) const;
  [[nodiscard]] bool is_direct(std::uint64_t sequence) const;
  void meet() { barrier_.arrive_and_wait(patient_); }

  void allocate_bucket(Post& post, std::uint64_t sequence);
  void stage_short(const Post& post, std::uint64_t sequence) const;
  void finish_short(const Post& post, std::uint64_t sequence) const;
  void direct(const Post& post);
  void all_reduce_piecewise(const Post& post);
  void broadcast_piecewise(const Post& post);
  void all_gather_piecewise(const Post& post);
  void reduce_scatter_piecewise(const Post& post);
  void all_to_all_piecewise(const Post& post);

  [[nodiscard]] Share share_of(int rank, std::int64_t length, std::int64_t whole) const;
  void reduce_here(const Call& call, std::span<const void* const> sources, std::span<void* const> destinations,
                   std::int64_t count) const;

  const ShmRegion& region_;
  ShmBarrier& barrier_;
  ShmArena& arena_;
  const int rank_;
  const int world_size_;
  bool patient_ = true;
};

}  // namespace lrun::detail
