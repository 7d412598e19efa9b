#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>

namespace lrun::detail {

/// While it lives, LibTorch's operations on this thread that are given no random generator (dropout, rand, normal_, …)
/// draw from this one instead of the default one, which all threads share. CPU only.
///
/// LibTorch has a default generator a device, not a thread. So the operators that take a generator get a kernel under a
/// dispatch key that is only in effect where this guard is; all others pass the key by at no cost.
class ThreadGenerator {
 public:
  /// \param generator  outlives this object.
  explicit ThreadGenerator(at::Generator& generator);
  ThreadGenerator(const ThreadGenerator&) = delete;
  ThreadGenerator& operator=(const ThreadGenerator&) = delete;
  ~ThreadGenerator();

 private:
  at::Generator* before_;
  c10::impl::IncludeDispatchKeyGuard included_;
};

/// A number from the default generator of the CPU, as torch::manual_seed has set it.
std::uint64_t draw_from_default_generator();

/// The seed of stream `index` of `seed`: for CPU generators, which use 32 bits of it.
std::uint64_t seed_of_stream(std::uint64_t seed, std::uint64_t index);

}  // namespace lrun::detail
