// In: one rank's operations in the order of posting. Out: their results in the tensors of each Post. Called by the gloo
// group on the queue's thread.
#include "runtime/collectives/gloo/operations.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/collectives/common/posted_collectives.h"
#include "runtime/collectives/common/reduce.h"

namespace lrun::detail {
namespace {

/// Up to this size every rank sends everything to every other and reduces it all: one way instead of two.
constexpr std::size_t kShortBytes = 16 << 10;

/// A piece of a long tensor. It is long enough that its messages cost little, and short enough that its reduction
/// overlaps with the next piece and the received data stays in the cache.
constexpr std::size_t kPieceBytes = 4 << 20;

std::byte* readable_of(const Post& post) {
  return static_cast<std::byte*>(const_cast<void*>(post.input.const_data_ptr()));  // only read
}

std::size_t bytes_of(std::int64_t elements, const Post& post) {
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(post.input.element_size());
}

void reduce_here(const Post& post, const std::vector<const void*>& sources, void* destination, std::int64_t count) {
  if (count == 0) return;
  reduce(static_cast<at::ScalarType>(post.call.dtype), static_cast<ReduceOp>(post.call.op), sources, {&destination, 1},
         count);
}

/// One rank may pass the same memory as input and as its row of the output.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

}  // namespace

GlooOperations::GlooOperations(GlooChannel& channel, int rank, int world_size)
    : channel_(channel), rank_(rank), world_size_(world_size) {}

void GlooOperations::perform(Post& post, std::uint64_t sequence) {
  channel_.begin(sequence, post.shown(sequence));
  channel_.agree(post.call);
  if (post.call.operation == Call::Operation::kAllocateBucket) {
    post.output = ordinary_bucket(post.call);
  } else {
    run(post);
  }
  channel_.end();
}

void GlooOperations::run(const Post& post) {
  switch (post.call.operation) {
    case Call::Operation::kAllReduce:
      return post.input.nbytes() <= kShortBytes ? all_reduce_short(post) : all_reduce(post);
    case Call::Operation::kBroadcast:
      return broadcast(post);
    case Call::Operation::kAllGather:
      return all_gather(post);
    case Call::Operation::kReduceScatter:
      return reduce_scatter(post);
    case Call::Operation::kAllToAll:
      return all_to_all(post);
    case Call::Operation::kBarrier:
    case Call::Operation::kAllocateBucket:
      return;
  }
}

template <typename Function>
void GlooOperations::for_each_peer(const Function& function) const {
  // Each rank begins with its right neighbour, so that not all send to the same one at a time.
  for (int step = 1; step < world_size_; ++step) function((rank_ + step) % world_size_);
}

GlooOperations::Range GlooOperations::share_of(int rank, Range whole) const {
  const auto at = [&](std::int64_t part) { return whole.size * part / world_size_; };
  return {whole.begin + at(rank), at(rank + 1) - at(rank)};
}

void GlooOperations::move(const Pieces& pieces) {
  auto batch = channel_.start(pieces);
  channel_.finish(batch);
}

/// Room for `bytes` from each peer.
std::byte* GlooOperations::scratch(std::size_t slot, int peer, std::size_t bytes) {
  const std::size_t room = (bytes + 63) / 64 * 64;
  std::vector<std::byte>& memory = scratch_[slot % 2];
  const std::size_t needed = room * static_cast<std::size_t>(world_size_);
  if (memory.size() < needed) memory.resize(needed);
  return memory.data() + room * static_cast<std::size_t>(peer);
}

void GlooOperations::all_reduce_short(const Post& post) {
  const std::size_t bytes = post.input.nbytes();
  std::byte* tensor = output_of(post);
  std::vector<const void*> sources(static_cast<std::size_t>(world_size_), tensor);
  Pieces pieces;
  for_each_peer([&](int peer) {
    std::byte* place = scratch(0, peer, bytes);
    sources[static_cast<std::size_t>(peer)] = place;
    pieces.push_back({peer, place, bytes, false});
    pieces.push_back({peer, tensor, bytes, true});
  });
  move(pieces);
  reduce_here(post, sources, tensor, post.call.count);
}

// Step k: exchange the shares of piece k; reduce the own share of piece k−1 and exchange the results; wait for the
// results of piece k−2.
void GlooOperations::all_reduce(const Post& post) {
  std::byte* tensor = output_of(post);
  const auto element = static_cast<std::size_t>(post.input.element_size());
  const auto length = static_cast<std::int64_t>(kPieceBytes / element);
  const std::int64_t number = (post.call.count + length - 1) / length;
  const auto has = [&](std::int64_t piece) { return piece >= 0 && piece < number; };
  const auto share = [&](std::int64_t piece, int rank) {
    return share_of(rank, {piece * length, std::min(length, post.call.count - piece * length)});
  };
  const auto piece_at = [&](int peer, Range range, bool sends) {
    return GlooPiece{peer, tensor + bytes_of(range.begin, post), bytes_of(range.size, post), sends};
  };
  std::array<GlooChannel::Batch, 2> scattering;
  std::array<GlooChannel::Batch, 2> gathering;
  for (std::int64_t step = 0; step < number + 2; ++step) {
    if (has(step)) {
      Pieces pieces;
      const std::size_t bytes = bytes_of(share(step, rank_).size, post);
      for_each_peer([&](int peer) {
        pieces.push_back({peer, scratch(static_cast<std::size_t>(step), peer, bytes), bytes, false});
        pieces.push_back(piece_at(peer, share(step, peer), true));
      });
      scattering[static_cast<std::size_t>(step) % 2] = channel_.start(pieces);
    }
    if (const std::int64_t piece = step - 1; has(piece)) {
      const auto slot = static_cast<std::size_t>(piece);
      channel_.finish(scattering[slot % 2]);
      const Range mine = share(piece, rank_);
      std::byte* place = tensor + bytes_of(mine.begin, post);
      std::vector<const void*> sources(static_cast<std::size_t>(world_size_), place);
      Pieces pieces;
      for_each_peer([&](int peer) {
        sources[static_cast<std::size_t>(peer)] = scratch(slot, peer, bytes_of(mine.size, post));
        pieces.push_back(piece_at(peer, share(piece, peer), false));
        pieces.push_back(piece_at(peer, mine, true));
      });
      reduce_here(post, sources, place, mine.size);
      gathering[slot % 2] = channel_.start(pieces);
    }
    if (const std::int64_t piece = step - 2; has(piece)) {
      channel_.finish(gathering[static_cast<std::size_t>(piece) % 2]);
    }
  }
}

// A long tensor leaves its root once: a share to each rank, which passes it on.
void GlooOperations::broadcast(const Post& post) {
  std::byte* tensor = output_of(post);
  const int root = post.call.root;
  const Range whole{0, post.call.count};
  const bool in_shares = world_size_ > 2 && post.input.nbytes() > kShortBytes;
  const auto piece_at = [&](int peer, Range range, bool sends) {
    return GlooPiece{peer, tensor + bytes_of(range.begin, post), bytes_of(range.size, post), sends};
  };
  Pieces first;
  Pieces second;
  for_each_peer([&](int peer) {
    if (rank_ == root) first.push_back(piece_at(peer, in_shares ? share_of(peer, whole) : whole, true));
    if (peer == root) first.push_back(piece_at(root, in_shares ? share_of(rank_, whole) : whole, false));
    if (!in_shares) return;
    if (peer != root) second.push_back(piece_at(peer, share_of(rank_, whole), true));
    if (rank_ != root) second.push_back(piece_at(peer, share_of(peer, whole), false));
  });
  move(first);
  move(second);
}

void GlooOperations::all_gather(const Post& post) {
  const std::size_t bytes = post.input.nbytes();
  const auto row = [&](int rank) { return output_of(post) + bytes * static_cast<std::size_t>(rank); };
  Pieces pieces;
  for_each_peer([&](int peer) {
    pieces.push_back({peer, row(peer), bytes, false});
    pieces.push_back({peer, readable_of(post), bytes, true});
  });
  auto batch = channel_.start(pieces);
  copy_bytes(row(rank_), readable_of(post), bytes);
  channel_.finish(batch);
}

void GlooOperations::reduce_scatter(const Post& post) {
  const auto length = static_cast<std::int64_t>(kPieceBytes / static_cast<std::size_t>(post.input.element_size()));
  const auto place = [&](int row, std::int64_t begin) {
    return readable_of(post) + bytes_of(row * post.call.count + begin, post);
  };
  for (std::int64_t begin = 0; begin < post.call.count; begin += length) {
    const std::int64_t size = std::min(length, post.call.count - begin);
    std::vector<const void*> sources(static_cast<std::size_t>(world_size_), place(rank_, begin));
    Pieces pieces;
    for_each_peer([&](int peer) {
      std::byte* from_peer = scratch(0, peer, bytes_of(size, post));
      sources[static_cast<std::size_t>(peer)] = from_peer;
      pieces.push_back({peer, from_peer, bytes_of(size, post), false});
      pieces.push_back({peer, place(peer, begin), bytes_of(size, post), true});
    });
    move(pieces);
    reduce_here(post, sources, output_of(post) + bytes_of(begin, post), size);
  }
}

void GlooOperations::all_to_all(const Post& post) {
  std::vector<GlooPiece> sends;
  std::vector<GlooPiece> receives;
  std::byte* from = readable_of(post);
  std::byte* to = output_of(post);
  for (int rank = 0; rank < world_size_; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    sends.push_back({rank, from, bytes_of(post.rows.sends[index], post), true});
    receives.push_back({rank, to, bytes_of(post.rows.receives[index], post), false});
    from += sends.back().bytes;
    to += receives.back().bytes;
  }
  Pieces pieces;
  for_each_peer([&](int peer) {
    pieces.push_back(receives[static_cast<std::size_t>(peer)]);
    pieces.push_back(sends[static_cast<std::size_t>(peer)]);
  });
  auto batch = channel_.start(pieces);
  const auto mine = static_cast<std::size_t>(rank_);
  copy_bytes(static_cast<std::byte*>(receives[mine].data), static_cast<std::byte*>(sends[mine].data),
             sends[mine].bytes);
  channel_.finish(batch);
}

}  // namespace lrun::detail
