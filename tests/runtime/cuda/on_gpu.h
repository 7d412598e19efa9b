#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/session.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/support/backend_ranks.h"

namespace lrun::detail::testing {

/// The processes of a test may take this long; then they print where they are and end, whatever CUDA does.
inline constexpr unsigned kSecondsOfAProcess = 90;

inline at::TensorOptions on_gpu(at::ScalarType dtype) { return at::TensorOptions().dtype(dtype).device(at::kCUDA, 0); }

/// As in a program that links it: LibTorch does not look for its CUDA side again once it was used.
void load_cuda_side();

/// Runs `body` in a process of its own: CUDA does not survive the forks of other tests. \return  as error_of().
std::string run_apart(const std::function<void()>& body);

/// The same as each of several ranks. \return  of each rank.
std::vector<std::string> run_ranks_apart(int ranks, const std::function<void(int rank)>& body);

/// Of the one rank of a world of one, on `replicas` times the first GPU.
SessionOptions options_of_one(const std::string& strategy, int replicas = 1);

/// For ranks that share the first GPU and shall be taken for ranks of different hosts: NCCL refuses them on one host.
void pretend_to_be_host(int rank);

/// float32 is 32 bits wide: cuDNN's convolutions, and if asked for matrix products, else are of 19 bits (TF32).
void switch_tf32_off();

void synchronize_gpu();

/// Products of large matrices, for so long at least: kernels on the current stream.
class Spin {
 public:
  Spin();
  /// Returns at once.
  void start(std::chrono::milliseconds length);

 private:
  at::Tensor matrix_;
  at::Tensor product_;
  double seconds_of_one_ = 0;
};

/// A place in the first GPU's current stream: whether the GPU has come to it.
std::function<bool()> mark_current_stream();

/// Of the first GPU, in use by all processes.
std::size_t used_gpu_memory();

}  // namespace lrun::detail::testing
