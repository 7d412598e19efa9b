// In: pointers to the same range of all ranks' tensors. Out: their sum, product, …, in rank order, in one pass over
// memory. Called by all CPU backends.
#include "runtime/collectives/common/reduce.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace lrun::detail {
namespace {

/// The type in which elements are summed: halves lose too much when rounded after every rank.
template <typename T>
using Sum = std::conditional_t<std::is_same_v<T, at::Half> || std::is_same_v<T, at::BFloat16>, float, T>;

template <ReduceOp op, typename T>
[[gnu::always_inline]] inline T combine(T a, T b) {
  // Comparisons are written so that a NaN on either side wins, as in torch.
  if constexpr (op == ReduceOp::kMax) return (a > b || a != a) ? a : b;
  if constexpr (op == ReduceOp::kMin) return (a < b || a != a) ? a : b;
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // integers wrap
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

/// One call's arguments, passed as a whole to the code of one instruction set.
struct Job {
  std::span<const void* const> sources;
  std::span<void* const> destinations;
  std::int64_t count;
};

/// Two ranks whose copies lie in shared memory. This case has its own loop because it needs no intermediate store.
template <typename T, ReduceOp op>
[[gnu::always_inline]] inline void reduce_pair_in_place(const Job& job) {
  T* a = static_cast<T*>(job.destinations[0]);
  T* b = static_cast<T*>(job.destinations[1]);
  // a and b are whole copies of different ranks.
#pragma GCC ivdep
  for (std::int64_t i = 0; i < job.count; ++i) {
    T value = combine<op>(a[i], b[i]);
    if constexpr (op == ReduceOp::kAverage) value = value * T(0.5);
    a[i] = value;
    b[i] = value;
  }
}

template <typename T, ReduceOp op>
[[gnu::always_inline]] inline void reduce_blocks(const Job& job) {
  constexpr std::int64_t kBlock = 1024;  // the sums of a block stay in the first-level cache
  alignas(64) std::array<Sum<T>, kBlock> sums;
  for (std::int64_t start = 0; start < job.count; start += kBlock) {
    const std::int64_t size = std::min(kBlock, job.count - start);
    const T* first = static_cast<const T*>(job.sources[0]) + start;
    for (std::int64_t i = 0; i < size; ++i) sums[static_cast<std::size_t>(i)] = static_cast<Sum<T>>(first[i]);
    for (const void* pointer : job.sources.subspan(1)) {
      const T* source = static_cast<const T*>(pointer) + start;
      for (std::int64_t i = 0; i < size; ++i) {
        auto& sum = sums[static_cast<std::size_t>(i)];
        sum = combine<op>(sum, static_cast<Sum<T>>(source[i]));
      }
    }
    if constexpr (op == ReduceOp::kAverage) {
      const auto ranks = static_cast<Sum<T>>(job.sources.size());
      for (std::int64_t i = 0; i < size; ++i) sums[static_cast<std::size_t>(i)] /= ranks;
    }
    for (void* pointer : job.destinations) {
      T* destination = static_cast<T*>(pointer) + start;
      for (std::int64_t i = 0; i < size; ++i) destination[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
    }
  }
}

template <typename T, ReduceOp op>
[[gnu::always_inline]] inline void reduce_as(const Job& job) {
  if constexpr (std::is_same_v<T, Sum<T>>) {
    if (std::ranges::equal(job.sources, job.destinations) && job.sources.size() == 2) {
      return reduce_pair_in_place<T, op>(job);
    }
  }
  reduce_blocks<T, op>(job);
}

// One copy of the loops per instruction set. Chosen by hand rather than with target_clones, whose resolvers run before
// a sanitizer is ready.
template <typename T, ReduceOp op>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"))) void reduce_avx512(
    const Job& job) {
  reduce_as<T, op>(job);
}

template <typename T, ReduceOp op>
__attribute__((target("avx2"))) void reduce_avx2(const Job& job) {
  reduce_as<T, op>(job);
}

template <typename T, ReduceOp op>
void reduce_baseline(const Job& job) {
  reduce_as<T, op>(job);
}

template <typename T, ReduceOp op>
void reduce_with_best(const Job& job) {
  static const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx512) return reduce_avx512<T, op>(job);
  if (avx2) return reduce_avx2<T, op>(job);
  reduce_baseline<T, op>(job);
}

template <typename T>
void reduce_typed(ReduceOp op, const Job& job) {
  switch (op) {
    case ReduceOp::kSum:
      return reduce_with_best<T, ReduceOp::kSum>(job);
    case ReduceOp::kMax:
      return reduce_with_best<T, ReduceOp::kMax>(job);
    case ReduceOp::kMin:
      return reduce_with_best<T, ReduceOp::kMin>(job);
    case ReduceOp::kAverage:
      if constexpr (!std::is_integral_v<T>) return reduce_with_best<T, ReduceOp::kAverage>(job);
  }
  throw std::logic_error("reduce: the average of integers");
}

}  // namespace

bool can_reduce(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat:
    case at::kDouble:
    case at::kInt:
    case at::kLong:
    case at::kByte:
      return true;
    default:
      return false;
  }
}

void reduce(at::ScalarType dtype, ReduceOp op, std::span<const void* const> sources,
            std::span<void* const> destinations, std::int64_t count) {
  const Job job{sources, destinations, count};
  switch (dtype) {
    case at::kHalf:
      return reduce_typed<at::Half>(op, job);
    case at::kBFloat16:
      return reduce_typed<at::BFloat16>(op, job);
    case at::kFloat:
      return reduce_typed<float>(op, job);
    case at::kDouble:
      return reduce_typed<double>(op, job);
    case at::kInt:
      return reduce_typed<std::int32_t>(op, job);
    case at::kLong:
      return reduce_typed<std::int64_t>(op, job);
    case at::kByte:
      return reduce_typed<std::uint8_t>(op, job);
    default:
      throw std::logic_error("reduce: a dtype that can_reduce() refuses");
  }
}

}  // namespace lrun::detail
