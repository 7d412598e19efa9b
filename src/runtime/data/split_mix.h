#pragma once

#include <cstdint>

namespace lrun::detail {

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. Its own, because
/// std::shuffle and the distributions of <random> differ between standard libraries.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}

  std::uint64_t next() {
    std::uint64_t bits = state_ += 0x9E3779B97F4A7C15U;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
    return bits ^ (bits >> 31);
  }

  /// Uniform in 0 … bound−1: values that would favour the small ones are drawn again.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t biased = (0 - bound) % bound;
    std::uint64_t bits = next();
    while (bits < biased) bits = next();
    return bits % bound;
  }

 private:
  std::uint64_t state_;
};

}  // namespace lrun::detail
