#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace lrun::test {

/// Random choices that follow from a seed and a number alone.
class Chance {
 public:
  Chance(std::uint64_t seed, int number) {
    std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U),
                           static_cast<std::uint32_t>(number)};
    engine_.seed(sequence);
  }

  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(limit)); }
  int between(int least, int most) { return least + below(most - least + 1); }
  bool percent(int share) { return below(100) < share; }
  template <typename T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace lrun::test
