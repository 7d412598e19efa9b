#include "runtime/collectives/common/bucket_tag.h"

namespace lrun::detail {

std::string describe_tag(std::uint64_t tag) {
  if (tag == 0) return "";
  const auto bucket = BucketTag::decode(tag);
  if (!bucket) return ", tag " + std::to_string(tag);
  return ", bucket " + std::to_string(bucket->bucket) + " of pass " + std::to_string(bucket->pass) + " of model " +
         std::to_string(bucket->model);
}

std::string explain_tags(std::uint64_t first, std::uint64_t other) {
  const auto one = BucketTag::decode(first);
  const auto two = BucketTag::decode(other);
  if (!one || !two || *one == *two) return "";
  if (one->model != two->model) return "; one backward() may run through one wrapped model only";
  return "; every rank has to call backward() equally often, and none may skip a step that failed";
}

}  // namespace lrun::detail
