#include "runtime/bucket_plan.h"

#include <algorithm>
#include <map>

namespace lrun {
namespace {

constexpr std::int64_t kAlignmentBytes = 64;

struct OpenBucket {
  PlannedBucket bucket;
  std::int64_t element_bytes = 1;
  std::int64_t limit_bytes = 0;
};

std::int64_t aligned(std::int64_t elements, std::int64_t element_bytes) {
  const std::int64_t step = std::max<std::int64_t>(1, kAlignmentBytes / element_bytes);
  return (elements + step - 1) / step * step;
}

PlannedBucket close(OpenBucket open) {
  PlannedBucket bucket = std::move(open.bucket);
  bucket.flags_offset = bucket.elements;
  bucket.elements += static_cast<std::int64_t>(bucket.slots.size());
  return bucket;
}

}  // namespace

std::vector<PlannedBucket> plan_buckets(const std::vector<BucketItem>& items, std::int64_t first_bucket_bytes,
                                        std::int64_t bucket_bytes) {
  std::vector<PlannedBucket> closed;
  std::map<std::size_t, OpenBucket> open;
  std::map<std::size_t, std::int64_t> limits;
  for (std::size_t index = items.size(); index-- > 0;) {
    const BucketItem& item = items[index];
    auto [entry, is_new] = open.try_emplace(item.kind);
    OpenBucket& current = entry->second;
    if (is_new) {
      current.bucket.kind = item.kind;
      current.element_bytes = item.element_bytes;
      current.limit_bytes = limits.try_emplace(item.kind, std::min(first_bucket_bytes, bucket_bytes)).first->second;
    }
    current.bucket.slots.push_back({index, current.bucket.elements});
    current.bucket.elements += aligned(item.elements, item.element_bytes);
    if (current.bucket.elements * item.element_bytes >= current.limit_bytes) {
      closed.push_back(close(std::move(current)));
      open.erase(entry);
      limits[item.kind] = bucket_bytes;
    }
  }
  for (auto& [kind, bucket] : open) closed.push_back(close(std::move(bucket)));
  // Its last parameter decides when a bucket is complete.
  std::stable_sort(closed.begin(), closed.end(), [](const PlannedBucket& one, const PlannedBucket& other) {
    return one.slots.back().item > other.slots.back().item;
  });
  return closed;
}

}  // namespace lrun
