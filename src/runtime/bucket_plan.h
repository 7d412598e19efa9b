#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lrun {

/// What the plan needs to know of one parameter.
struct BucketItem {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 4;
  std::size_t kind = 0;  ///< Equal for parameters that may share a bucket: same dtype, same device.

  bool operator==(const BucketItem&) const = default;
};

/// Where one parameter's gradient lies in its bucket.
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

/// Packs parameters in reverse order, because gradients arrive roughly so. A bucket is closed when it has reached the
/// limit (the first of each kind: `first_bucket_bytes`), so it exceeds it by its last parameter at most. The buckets
/// come in the order in which they are expected to be complete.
std::vector<PlannedBucket> plan_buckets(const std::vector<BucketItem>& items, std::int64_t first_bucket_bytes,
                                        std::int64_t bucket_bytes);

}  // namespace lrun
