#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/collectives/common/perform.h"
#include "runtime/collectives/gloo/channel.h"

namespace lrun::detail {

/// One rank's part of the operations of a gloo group: every rank reduces its share of each piece, in rank order and
/// with the arithmetic of 'shm', while the next piece is in flight.
///
/// Threads  perform() on one thread at a time.
class GlooOperations {
 public:
  /// The channel outlives it.
  GlooOperations(GlooChannel& channel, int rank, int world_size);

  /// Takes part in operation `sequence`, from sending the call to its end.
  /// \param post  for kAllocateBucket the new bucket is put into post.output.
  /// \throws the group's failure.
  void perform(Post& post, std::uint64_t sequence);

 private:
  /// Elements of a tensor, or of a piece of it.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };
  using Pieces = std::vector<GlooPiece>;

  void run(const Post& post);
  void all_reduce(const Post& post);
  void all_reduce_short(const Post& post);
  void broadcast(const Post& post);
  void all_gather(const Post& post);
  void reduce_scatter(const Post& post);
  void all_to_all(const Post& post);

  [[nodiscard]] Range share_of(int rank, Range whole) const;
  void move(const Pieces& pieces);
  std::byte* scratch(std::size_t slot, int peer, std::size_t bytes);
  template <typename Function>
  void for_each_peer(const Function& function) const;

  GlooChannel& channel_;
  const int rank_;
  const int world_size_;
  std::array<std::vector<std::byte>, 2> scratch_;  // received data, for two pieces at a time
};

}  // namespace lrun::detail
