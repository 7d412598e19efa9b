#include "runtime/collectives/shm/arena.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <utility>

namespace lrun::detail {
namespace {

/// Copies at the same distance from their pages would all compete for the same sets of the first-level cache.
std::size_t skew(int rank) { return static_cast<std::size_t>(rank) * 5 * 64 % 4096; }

}  // namespace

ShmArena::ShmArena(SharedMemory memory, std::size_t begin, int rank, int world_size)
    : rank_(rank), world_size_(world_size), memory_(std::move(memory)), end_(round_up(begin, page_size())) {}

at::Tensor ShmArena::allocate(std::int64_t number, std::int64_t count, at::ScalarType dtype) {
  const auto options = at::TensorOptions().dtype(dtype);
  if (count == 0) return at::empty({0}, options);
  const std::lock_guard lock(mutex_);
  Bucket bucket;
  bucket.number = number;
  bucket.bytes = static_cast<std::size_t>(count) * c10::elementSize(dtype);
  bucket.stride = round_up(bucket.bytes, page_size()) + round_up(4096, page_size());
  bucket.file_offset = end_;
  end_ += static_cast<std::size_t>(world_size_) * bucket.stride;
  memory_.resize(end_);  // to the same size on every rank
  bucket.mapping = memory_.map(bucket.file_offset, end_ - bucket.file_offset);

  // Each rank brings its own copy into memory: near its own cores, and an error is its own.
  std::byte* pages = bucket.mapping.data() + static_cast<std::size_t>(rank_) * bucket.stride;
  memory_.populate({pages, bucket.stride}, bucket.file_offset + static_cast<std::size_t>(rank_) * bucket.stride);
  std::byte* mine = pages + skew(rank_);
  buckets_.emplace(mine, std::move(bucket));
  return at::from_blob(
      mine, {count}, [self = shared_from_this()](void* data) { self->release(data); }, options);
}

void ShmArena::touch(const at::Tensor& bucket) const {
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(static_cast<const std::byte*>(bucket.const_data_ptr()));
  if (found != buckets_.end()) prefault({found->second.mapping.data(), found->second.mapping.size()});
}

void ShmArena::release(const void* data) noexcept {
  // The memory is the parent's, and its lock may be held by a thread that is not here.
  if (!owner_.is_this()) return;
  const std::lock_guard lock(mutex_);
  const auto found = buckets_.find(static_cast<const std::byte*>(data));
  if (found == buckets_.end()) return;
  // Only this rank's pages: another rank may still use its copy.
  const Bucket& bucket = found->second;
  memory_.discard(bucket.file_offset + static_cast<std::size_t>(rank_) * bucket.stride, bucket.stride);
  buckets_.erase(found);
}

const ShmArena::Bucket* ShmArena::bucket_of(const void* data, std::size_t bytes) const {
  const auto* address = static_cast<const std::byte*>(data);
  auto found = buckets_.upper_bound(address);
  if (found == buckets_.begin()) return nullptr;
  --found;
  const auto offset = static_cast<std::size_t>(address - found->first);
  return offset + bytes <= found->second.bytes ? &found->second : nullptr;
}

ShmArena::Place ShmArena::find(const void* data, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const Bucket* bucket = bucket_of(data, bytes);
  if (bucket == nullptr) return {};
  const std::byte* mine = bucket->mapping.data() + static_cast<std::size_t>(rank_) * bucket->stride + skew(rank_);
  return {bucket->number, static_cast<const std::byte*>(data) - mine};
}

std::byte* ShmArena::copy_of(int rank, const void* data) const {
  const std::lock_guard lock(mutex_);
  const Bucket& bucket = *bucket_of(data, 0);
  std::byte* first = bucket.mapping.data();
  const std::byte* mine = first + static_cast<std::size_t>(rank_) * bucket.stride + skew(rank_);
  return first + static_cast<std::size_t>(rank) * bucket.stride + skew(rank) +
         (static_cast<const std::byte*>(data) - mine);
}

}  // namespace lrun::detail
