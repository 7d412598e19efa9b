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
    barrier_.fail({Failure::Kind::kMismatch, describe_mismatch(first, rank, other, sequence)}).raise();
  }
}

bool ShmOperations::is_short(const Post& post) const { return post.input.nbytes() <= region_.short_bytes(); }

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
    const std::string text = "rank " + std::to_string(rank_) + ": " + name_call(call.operation, sequence) + ": ";
    barrier_.fail({Failure::Kind::kOther, text + error.what()}).raise();
  }
  meet();
  arena_.touch(post.output);
}

void ShmOperations::stage_short(const Post& post, std::uint64_t sequence) const {
  if (post.call.operation == Call::Operation::kBroadcast && post.call.root != rank_) return;
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
  const bool scatters = call.operation == Call::Operation::kReduceScatter;
  const std::size_t row = scatters ? static_cast<std::size_t>(rank_) * post.output.nbytes() : 0;
  std::vector<const void*> sources;
  for (int rank = 0; rank < world_size_; ++rank) sources.push_back(region_.small_slot(rank, sequence) + row);
  void* destination = output_of(post);
  reduce_here(call, sources, {&destination, 1}, call.count);
}

// Between the barrier before and the one after it, nobody but these lines touches the copies.
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
