#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lrun::detail {

/// The bucket of gradients that an all-reduce is for, to distinguish buckets of equal size. Value.
///
/// Coded into the tag of Collectives::all_reduce, whose highest bit is set for these and clear for all others.
struct BucketTag {
  std::uint64_t model = 0;   ///< Collectives::next_number() of its GradientSync; 15 bits are kept.
  std::uint64_t pass = 0;    ///< Its backward passes so far, one more for each that ended early; 32 bits are kept.
  std::uint64_t bucket = 0;  ///< 16 bits are kept.

  [[nodiscard]] constexpr std::uint64_t encode() const {
    return kMark | (model & 0x7FFF) << 48 | (pass & 0xFFFFFFFF) << 16 | (bucket & 0xFFFF);
  }
  /// Nothing when `tag` is none of these.
  [[nodiscard]] static constexpr std::optional<BucketTag> decode(std::uint64_t tag) {
    if ((tag & kMark) == 0) return std::nullopt;
    return BucketTag{tag >> 48 & 0x7FFF, tag >> 16 & 0xFFFFFFFF, tag & 0xFFFF};
  }
  bool operator==(const BucketTag&) const = default;

 private:
  static constexpr std::uint64_t kMark = std::uint64_t{1} << 63;
};

/// ', bucket 0 of pass 2 of model 1', ', tag 7', or nothing for 0.
std::string describe_tag(std::uint64_t tag);

/// A hint for the case that two ranks differ in these tags: '; …', or empty when there is no hint.
std::string explain_tags(std::uint64_t first, std::uint64_t other);

}  // namespace lrun::detail
