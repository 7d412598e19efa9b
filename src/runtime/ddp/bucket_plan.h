#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lrun::detail {

/// The plan's input for one parameter.
struct BucketItem {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 4;
  std::size_t kind = 0;  ///< Equal for parameters that may share a bucket: same dtype, same device.

  bool operator==(const BucketItem&) const = default;
};

/// The place of one parameter's gradient in its bucket.
struct BucketSlot {
  std::size_t item = 0;     ///< Index into the planned items.
  std::int64_t offset = 0;  ///< In elements; 64-byte aligned.

  bool operator==(const BucketSlot&) const = default;
};

struct PlannedBucket {
  std::size_t kind = 0;
  std::vector<BucketSlot> slots;
  std::int64_t flags_offset = 0;  ///< One element per slot follows the gradients: did the parameter get one?
  std::int64_t elements = 0;      ///< All of it: gradients, alignment, flags.

  bool operator==(const PlannedBucket&) const = default;
};

/// Sizes at which a bucket is closed.
struct BucketLimits {
  std::int64_t first_bucket_bytes = 1;  ///< Of the first of each kind; at most bucket_bytes counts.
  std::int64_t bucket_bytes = 1;
};

/// Items in the order in which their gradients arrive: each index once.
using ArrivalOrder = std::vector<std::size_t>;

/// The expected order before any backward(): the last item first.
ArrivalOrder reverse_order(std::size_t items);

/// `arrived` first, then the others as reverse_order() has them.
ArrivalOrder with_the_others_last(ArrivalOrder arrived, std::size_t items);

/// Packs items in the order in which their gradients arrive. A bucket is closed when it has reached the limit, so it
/// exceeds it by its last item at most. The buckets come in the order in which they are expected to be complete.
std::vector<PlannedBucket> plan_buckets(const std::vector<BucketItem>& items, const ArrivalOrder& order,
                                        BucketLimits limits);

/// Whether each bucket is complete before the first gradient of the next one arrives: another plan would not let the
/// reduction begin sooner.
bool follows(const std::vector<PlannedBucket>& plan, const ArrivalOrder& order);

}  // namespace lrun::detail
