#include "runtime/ddp/bucket_plan.h"

#include <algorithm>
#include <map>

namespace lrun::detail {
namespace {

constexpr std::int64_t kAlignmentBytes = 64;

struct OpenBucket {
  PlannedBucket bucket;
  std::int64_t limit_bytes = 0;
};

std::int64_t aligned(std::int64_t elements, std::int64_t element_bytes) {
  const std::int64_t step = std::max<std::int64_t>(1, kAlignmentBytes / element_bytes);
  return (elements + step - 1) / step * step;
}

/// Where each item is in `order`.
std::vector<std::size_t> places_in(const ArrivalOrder& order) {
  std::vector<std::size_t> places(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) places.at(order[place]) = place;
  return places;
}

PlannedBucket close(OpenBucket open) {
  PlannedBucket bucket = std::move(open.bucket);
  bucket.flags_offset = bucket.elements;
  bucket.elements += static_cast<std::int64_t>(bucket.slots.size());
  return bucket;
}

}  // namespace

ArrivalOrder reverse_order(std::size_t items) { return with_the_others_last({}, items); }

ArrivalOrder with_the_others_last(ArrivalOrder arrived, std::size_t items) {
  std::vector<bool> has_arrived(items, false);
  for (const std::size_t item : arrived) has_arrived.at(item) = true;
  for (std::size_t item = items; item-- > 0;) {
    if (!has_arrived[item]) arrived.push_back(item);
  }
  return arrived;
}

std::vector<PlannedBucket> plan_buckets(const std::vector<BucketItem>& items, const ArrivalOrder& order,
                                        BucketLimits limits) {
  std::vector<PlannedBucket> closed;
  std::map<std::size_t, OpenBucket> open;
  std::map<std::size_t, std::int64_t> limit_of;
  for (const std::size_t index : order) {
    const BucketItem& item = items.at(index);
    auto [entry, is_new] = open.try_emplace(item.kind);
    OpenBucket& current = entry->second;
    if (is_new) {
      const std::int64_t first = std::min(limits.first_bucket_bytes, limits.bucket_bytes);
      current.bucket.kind = item.kind;
      current.limit_bytes = limit_of.try_emplace(item.kind, first).first->second;
    }
    current.bucket.slots.push_back({index, current.bucket.elements});
    current.bucket.elements += aligned(item.elements, item.element_bytes);
    if (current.bucket.elements * item.element_bytes >= current.limit_bytes) {
      closed.push_back(close(std::move(current)));
      open.erase(entry);
      limit_of[item.kind] = limits.bucket_bytes;
    }
  }
  for (auto& [kind, bucket] : open) closed.push_back(close(std::move(bucket)));
  // Its last item decides when a bucket is complete.
  const auto places = places_in(order);
  std::ranges::stable_sort(closed, {}, [&](const PlannedBucket& bucket) { return places[bucket.slots.back().item]; });
  return closed;
}

bool follows(const std::vector<PlannedBucket>& plan, const ArrivalOrder& order) {
  const auto places = places_in(order);
  std::size_t arrived = 0;  // all that the buckets so far wait for
  for (const auto& bucket : plan) {
    std::size_t last = arrived;
    for (const auto& slot : bucket.slots) {
      if (places[slot.item] < arrived) return false;
      last = std::max(last, places[slot.item] + 1);
    }
    arrived = last;
  }
  return true;
}

}  // namespace lrun::detail
