// One rank's part of each operation of a shared-memory group. ShmCollectives calls perform() for one posted operation
// after the other; the results are in the tensors of its Post. All ranks wait for each other at the group's barrier.

#include "runtime/collectives/shm/operations.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>

#include "runtime/collectives/common/reduce.h"

namespace lrun::detail {
namespace {

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

bool has_data(const Call& call) {
  return call.operation != Call::Operation::kBarrier && call.operation != Call::Operation::kAllocateBucket &&
         call.count > 0;
}

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

/// The longest row of an all_to_all, of any rank.
std::size_t longest_row_bytes(const Post& post) {
  return bytes_of(post.call.count, static_cast<std::size_t>(post.input.element_size()));
}

/// Where each row begins, in bytes, and where the last one ends.
std::vector<std::size_t> begins_of(const std::vector<std::int64_t>& counts, std::int64_t element) {
  std::vector<std::size_t> begins = {0};
  for (const std::int64_t count : counts) {
    begins.push_back(begins.back() + bytes_of(count, static_cast<std::size_t>(element)));
  }
  return begins;
}

std::int64_t chunk_elements(std::size_t element) { return static_cast<std::int64_t>(ShmRegion::kChunkBytes / element); }

}  // namespace

ShmOperations::ShmOperations(const ShmRegion& region, ShmBarrier& barrier, ShmArena& arena, int rank)
    : region_(region), barrier_(barrier), arena_(arena), rank_(rank), world_size_(region.world_size()) {}

void ShmOperations::perform(Post& post, std::uint64_t sequence, bool patient) {
  patient_ = patient;
  barrier_.begin(sequence, post.shown(sequence));
  const bool data = has_data(post.call);
  if (data && is_short(post)) stage_short(post, sequence);
  publish(post, sequence);
  meet();
  compare_calls(sequence);
  if (post.call.operation == Call::Operation::kAllocateBucket) return allocate_bucket(post, sequence);
  if (!data) return;
  if (is_short(post)) return finish_short(post, sequence);
  if (post.call.operation == Call::Operation::kAllToAll) return all_to_all_piecewise(post);
  if (is_direct(sequence)) return direct(post);
  switch (post.call.operation) {
    case Call::Operation::kAllReduce:
      return all_reduce_piecewise(post);
    case Call::Operation::kBroadcast:
      return broadcast_piecewise(post);
    case Call::Operation::kAllGather:
      return all_gather_piecewise(post);
    case Call::Operation::kReduceScatter:
      return reduce_scatter_piecewise(post);
    case Call::Operation::kBarrier:
    case Call::Operation::kAllocateBucket:
    case Call::Operation::kAllToAll:
      return;
  }
}

void ShmOperations::publish(const Post& post, std::uint64_t sequence) {
  RankCell& cell = region_.cell(rank_);
  PostedCall& mine = cell.posts[sequence % 2];
  mine.call = post.call;
  const ShmArena::Place place =
      post.input.defined() ? arena_.find(post.input.const_data_ptr(), post.input.nbytes()) : ShmArena::Place{};
  mine.bucket = place.bucket;
  mine.offset = place.offset;
  cell.sequence.store(sequence);
}

const PostedCall& ShmOperations::posted(int rank, std::uint64_t sequence) const {
  return region_.cell(rank).posts[sequence % 2];
}

void ShmOperations::compare_calls(std::uint64_t sequence) {
  const Call& first = posted(0, sequence).call;
  for (int rank = 1; rank < world_size_; ++rank) {
    const Call& other = posted(rank, sequence).call;
    if (other == first) continue;
    barrier_.fail({Failure::Kind::kMismatch, describe_mismatch(first, rank, other, sequence, barrier_.ranks_above())})
        .raise();
  }
}

bool ShmOperations::is_short(const Post& post) const {
  if (post.call.operation != Call::Operation::kAllToAll) return post.input.nbytes() <= region_.short_bytes();
  return static_cast<std::size_t>(world_size_) * longest_row_bytes(post) <= region_.short_bytes();  // on all ranks
}

bool ShmOperations::is_direct(std::uint64_t sequence) const {
  const PostedCall& first = posted(0, sequence);
  if (first.bucket < 0) return false;
  for (int rank = 1; rank < world_size_; ++rank) {
    const PostedCall& other = posted(rank, sequence);
    if (other.bucket != first.bucket || other.offset != first.offset) return false;
  }
  return true;
}

void ShmOperations::allocate_bucket(Post& post, std::uint64_t sequence) {
  const Call& call = post.call;
  try {
    post.output =
        arena_.allocate(static_cast<std::int64_t>(sequence), call.count, static_cast<at::ScalarType>(call.dtype));
  } catch (const std::system_error& error) {
    const std::string text = "rank " + std::to_string(name_of_rank(rank_, barrier_.ranks_above())) + ": " +
                             name_call(call.operation, sequence) + ": ";
    barrier_.fail({Failure::Kind::kOther, text + error.what()}).raise();
  }
  meet();
  arena_.touch(post.output);
}

void ShmOperations::stage_short(const Post& post, std::uint64_t sequence) const {
  if (post.call.operation == Call::Operation::kBroadcast && post.call.root != rank_) return;
  if (post.call.operation == Call::Operation::kAllToAll) {
    const std::vector<std::size_t> begins = begins_of(post.rows.sends, post.input.element_size());
    for (std::size_t row = 0; row + 1 < begins.size(); ++row) {
      copy_bytes(region_.small_slot(rank_, sequence) + row * longest_row_bytes(post), input_of(post) + begins[row],
                 begins[row + 1] - begins[row]);
    }
    return;
  }
  copy_bytes(region_.small_slot(rank_, sequence), input_of(post), post.input.nbytes());
}

void ShmOperations::finish_short(const Post& post, std::uint64_t sequence) const {
  const Call& call = post.call;
  const std::size_t bytes = post.input.nbytes();
  if (call.operation == Call::Operation::kBroadcast) {
    if (call.root != rank_) copy_bytes(output_of(post), region_.small_slot(call.root, sequence), bytes);
    return;
  }
  if (call.operation == Call::Operation::kAllGather) {
    for (int rank = 0; rank < world_size_; ++rank) {
      copy_bytes(output_of(post) + static_cast<std::size_t>(rank) * bytes, region_.small_slot(rank, sequence), bytes);
    }
    return;
  }
  if (call.operation == Call::Operation::kAllToAll) {
    const std::vector<std::size_t> begins = begins_of(post.rows.receives, post.output.element_size());
    const std::size_t mine = static_cast<std::size_t>(rank_) * longest_row_bytes(post);
    for (std::size_t row = 0; row + 1 < begins.size(); ++row) {
      copy_bytes(output_of(post) + begins[row], region_.small_slot(static_cast<int>(row), sequence) + mine,
                 begins[row + 1] - begins[row]);
    }
    return;
  }
  const bool scatters = call.operation == Call::Operation::kReduceScatter;
  const std::size_t row = scatters ? static_cast<std::size_t>(rank_) * post.output.nbytes() : 0;
  std::vector<const void*> sources;
  for (int rank = 0; rank < world_size_; ++rank) sources.push_back(region_.small_slot(rank, sequence) + row);
  void* destination = output_of(post);
  reduce_here(call, sources, {&destination, 1}, call.count);
}

// Between the barrier before and the one after, only this code touches the copies.
void ShmOperations::direct(const Post& post) {
  const Call& call = post.call;
  const std::size_t bytes = post.input.nbytes();
  const auto element = static_cast<std::size_t>(post.input.element_size());
  if (call.operation == Call::Operation::kBroadcast) {
    if (call.root != rank_) copy_bytes(output_of(post), arena_.copy_of(call.root, input_of(post)), bytes);
  } else if (call.operation == Call::Operation::kAllGather) {
    for (int rank = 0; rank < world_size_; ++rank) {
      copy_bytes(output_of(post) + static_cast<std::size_t>(rank) * bytes, arena_.copy_of(rank, input_of(post)), bytes);
    }
  } else {
    const bool scatters = call.operation == Call::Operation::kReduceScatter;
    const Share share = scatters ? Share{rank_ * call.count, call.count} : share_of(rank_, call.count, call.count);
    std::vector<const void*> sources;
    std::vector<void*> destinations;
    for (int rank = 0; rank < world_size_; ++rank) {
      std::byte* place = arena_.copy_of(rank, input_of(post)) + static_cast<std::size_t>(share.begin) * element;
      sources.push_back(place);
      destinations.push_back(place);
    }
    if (scatters) destinations.assign(1, output_of(post));
    reduce_here(call, sources, destinations, share.size);
  }
  meet();
}

// The operations on memory that is not shared go through the chunk slots, in steps with one barrier each. In one step
// different chunks are in different stages. The two slots of a rank take turns, so that nothing is written that another
// rank may still read.

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

// Step k: every rank copies chunk k of the others' rows in, side by side in its slot, and chunk k−1 of its own ones
// out. All take as many steps as the longest row of any rank needs.
void ShmOperations::all_to_all_piecewise(const Post& post) {
  const std::size_t limit = std::max<std::size_t>(1, ShmRegion::kChunkBytes / static_cast<std::size_t>(world_size_));
  const std::size_t steps = (longest_row_bytes(post) + limit - 1) / limit;
  const std::vector<std::size_t> sends = begins_of(post.rows.sends, post.input.element_size());
  const std::vector<std::size_t> receives = begins_of(post.rows.receives, post.output.element_size());
  const auto own = static_cast<std::size_t>(rank_);
  const auto slot = [&](std::size_t rank, std::size_t row, std::size_t piece) {
    return region_.chunk_slot(static_cast<int>(rank), piece) + row * limit;
  };
  const auto rest = [&](const std::vector<std::size_t>& begins, std::size_t row, std::size_t piece) {
    const std::size_t bytes = begins[row + 1] - begins[row];
    return bytes - std::min(bytes, piece * limit);
  };
  copy_bytes(output_of(post) + receives[own], input_of(post) + sends[own], rest(sends, own, 0));
  for (std::size_t step = 0; step < steps + 1; ++step) {
    if (step > 0) meet();
    for (std::size_t rank = 0; rank + 1 < sends.size(); ++rank) {
      if (rank == own) continue;
      if (step < steps) {
        copy_bytes(slot(own, rank, step), input_of(post) + sends[rank] + step * limit,
                   std::min(limit, rest(sends, rank, step)));
      }
      if (step > 0) {
        copy_bytes(output_of(post) + receives[rank] + (step - 1) * limit, slot(rank, own, step - 1),
                   std::min(limit, rest(receives, rank, step - 1)));
      }
    }
  }
}

ShmOperations::Share ShmOperations::share_of(int rank, std::int64_t length, std::int64_t whole) const {
  constexpr std::int64_t kElements = 64;  // whole cache lines of any dtype: no two ranks write to the same one
  const std::int64_t each = ((whole + world_size_ - 1) / world_size_ + kElements - 1) / kElements * kElements;
  const std::int64_t begin = std::min(length, rank * each);
  return {begin, std::min(length, begin + each) - begin};
}

void ShmOperations::reduce_here(const Call& call, std::span<const void* const> sources,
                                std::span<void* const> destinations, std::int64_t count) const {
  reduce(static_cast<at::ScalarType>(call.dtype), static_cast<ReduceOp>(call.op), sources, destinations, count);
}

}  // namespace lrun::detail
