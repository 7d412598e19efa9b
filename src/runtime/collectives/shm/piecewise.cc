// The operations on memory that is not shared: through the chunk slots, in steps with one barrier each. In one step
// different chunks are in different stages, and the two slots of a rank take turns, so that nothing is written that
// another rank may still read.

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/collectives/shm/operations.h"

namespace lrun::detail {
namespace {

/// [0, count) in pieces of nearly the same length, none longer than `limit`.
struct Pieces {
  Pieces(std::int64_t elements, std::int64_t limit) : count(elements), number((elements + limit - 1) / limit) {
    constexpr std::int64_t kElements = 64;
    const std::int64_t even = (elements + number - 1) / number;
    length = std::min(limit, (even + kElements - 1) / kElements * kElements);
  }

  [[nodiscard]] bool has(std::int64_t piece) const { return piece >= 0 && piece < number; }
  [[nodiscard]] std::int64_t begin(std::int64_t piece) const { return std::min(count, piece * length); }
  [[nodiscard]] std::int64_t size(std::int64_t piece) const { return begin(piece + 1) - begin(piece); }

  std::int64_t count;
  std::int64_t number;
  std::int64_t length = 0;
};

std::size_t bytes_of(std::int64_t elements, std::size_t element) {
  return static_cast<std::size_t>(elements) * element;
}

std::int64_t chunk_elements(std::size_t element) { return static_cast<std::int64_t>(ShmRegion::kChunkBytes / element); }

}  // namespace

// Step k: copy chunk k in, but for this rank's own share; reduce the own share of chunk k−1, from the slots of the
// others and the own tensor, into the tensor and the own slot; copy the others' shares of chunk k−2 out. A slot holds
// at each place either the input of its rank (shares of others) or a result (its own share), never both, so that two
// slots are enough for three stages.
void ShmOperations::all_reduce_piecewise(const Post& post) {
  const auto element = static_cast<std::size_t>(post.input.element_size());
  const Pieces pieces(post.call.count, chunk_elements(element));
  std::byte* tensor = output_of(post);
  const auto place = [&](std::int64_t piece, Share share) {
    return tensor + bytes_of(pieces.begin(piece) + share.begin, element);
  };
  const auto slot = [&](int rank, std::int64_t piece, Share share) {
    return region_.chunk_slot(rank, static_cast<std::uint64_t>(piece)) + bytes_of(share.begin, element);
  };
  for (std::int64_t step = 0; step < pieces.number + 2; ++step) {
    if (step > 0) meet();
    if (const std::int64_t piece = step; pieces.has(piece)) {
      for (int rank = 0; rank < world_size_; ++rank) {
        const Share share = share_of(rank, pieces.size(piece), pieces.length);
        if (rank != rank_) std::memcpy(slot(rank_, piece, share), place(piece, share), bytes_of(share.size, element));
      }
    }
    if (const std::int64_t piece = step - 1; pieces.has(piece)) {
      const Share share = share_of(rank_, pieces.size(piece), pieces.length);
      std::vector<const void*> sources;
      for (int rank = 0; rank < world_size_; ++rank) {
        sources.push_back(rank == rank_ ? place(piece, share) : slot(rank, piece, share));
      }
      void* destinations[] = {place(piece, share), slot(rank_, piece, share)};
      reduce_here(post.call, sources, destinations, share.size);
    }
    if (const std::int64_t piece = step - 2; pieces.has(piece)) {
      for (int rank = 0; rank < world_size_; ++rank) {
        const Share share = share_of(rank, pieces.size(piece), pieces.length);
        if (rank != rank_) std::memcpy(place(piece, share), slot(rank, piece, share), bytes_of(share.size, element));
      }
    }
  }
}

// Step k: the root copies chunk k in, the others copy chunk k−1 out.
void ShmOperations::broadcast_piecewise(const Post& post) {
  const auto element = static_cast<std::size_t>(post.input.element_size());
  const Pieces pieces(post.call.count, chunk_elements(element));
  const int root = post.call.root;
  for (std::int64_t step = 0; step < pieces.number + 1; ++step) {
    if (step > 0) meet();
    const std::int64_t piece = rank_ == root ? step : step - 1;
    if (!pieces.has(piece)) continue;
    std::byte* place = output_of(post) + bytes_of(pieces.begin(piece), element);
    std::byte* slot = region_.chunk_slot(root, static_cast<std::uint64_t>(piece));
    const std::size_t bytes = bytes_of(pieces.size(piece), element);
    std::memcpy(rank_ == root ? slot : place, rank_ == root ? place : slot, bytes);
  }
}

// Step k: every rank copies its chunk k in and chunk k−1 of all ranks out.
void ShmOperations::all_gather_piecewise(const Post& post) {
  const auto element = static_cast<std::size_t>(post.input.element_size());
  const Pieces pieces(post.call.count, chunk_elements(element));
  const auto row = [&](int rank) { return output_of(post) + bytes_of(rank * post.call.count, element); };
  if (row(rank_) != input_of(post)) std::memcpy(row(rank_), input_of(post), post.input.nbytes());
  for (std::int64_t step = 0; step < pieces.number + 1; ++step) {
    if (step > 0) meet();
    if (pieces.has(step)) {
      std::memcpy(region_.chunk_slot(rank_, static_cast<std::uint64_t>(step)),
                  row(rank_) + bytes_of(pieces.begin(step), element), bytes_of(pieces.size(step), element));
    }
    if (const std::int64_t piece = step - 1; pieces.has(piece)) {
      for (int rank = 0; rank < world_size_; ++rank) {
        if (rank == rank_) continue;
        std::memcpy(row(rank) + bytes_of(pieces.begin(piece), element),
                    region_.chunk_slot(rank, static_cast<std::uint64_t>(piece)), bytes_of(pieces.size(piece), element));
      }
    }
  }
}

// Step k: every rank copies chunk k of the others' rows in, side by side in its slot, and reduces chunk k−1 of its own.
void ShmOperations::reduce_scatter_piecewise(const Post& post) {
  const auto element = static_cast<std::size_t>(post.input.element_size());
  const std::int64_t limit = std::max<std::int64_t>(1, chunk_elements(element) / world_size_);
  const Pieces pieces(post.call.count, limit);
  const auto place = [&](int row, std::int64_t piece) {
    return input_of(post) + bytes_of(row * post.call.count + pieces.begin(piece), element);
  };
  const auto slot = [&](int rank, int row, std::int64_t piece) {
    return region_.chunk_slot(rank, static_cast<std::uint64_t>(piece)) + bytes_of(row * limit, element);
  };
  for (std::int64_t step = 0; step < pieces.number + 1; ++step) {
    if (step > 0) meet();
    if (pieces.has(step)) {
      for (int row = 0; row < world_size_; ++row) {
        if (row != rank_) std::memcpy(slot(rank_, row, step), place(row, step), bytes_of(pieces.size(step), element));
      }
    }
    if (const std::int64_t piece = step - 1; pieces.has(piece)) {
      std::vector<const void*> sources;
      for (int rank = 0; rank < world_size_; ++rank) {
        sources.push_back(rank == rank_ ? place(rank_, piece) : slot(rank, rank_, piece));
      }
      void* destination = output_of(post) + bytes_of(pieces.begin(piece), element);
      reduce_here(post.call, sources, {&destination, 1}, pieces.size(piece));
    }
  }
}

}  // namespace lrun::detail
