// All-reduce (float32, sum): microseconds until the slowest rank has the result, by the backend of
// LRUN_PROCESS_GROUP_BACKEND, of tensors in buckets of allocate_bucket() (shm only) and of the program's own.
//
// A rank of bench/runtime.py. An order is 'BYTES REPETITIONS'.
#include <ATen/ATen.h>
#include <lrun/session.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "turns.h"

namespace {

using lrun::bench::Figures;

constexpr std::int64_t kLargest = 256 << 20;  // bytes

/// Sums 1, 2, … over the ranks, in the first and the last element.
void check_sum(lrun::Collectives& group, at::Tensor tensor) {
  tensor.fill_(group.rank() + 1);
  group.all_reduce(tensor, lrun::ReduceOp::kSum)->wait();
  const double wanted = group.world_size() * (group.world_size() + 1) / 2.0;
  if (tensor[0].item<double>() != wanted || tensor[-1].item<double>() != wanted) {
    throw std::logic_error("the sum is wrong");
  }
  tensor.zero_();
}

/// The median over repetitions of the slowest rank's time.
double measure(lrun::Collectives& group, const at::Tensor& tensor, int repetitions) {
  check_sum(group, tensor);
  std::vector<double> slowest;
  for (int i = 0; i < repetitions; ++i) {
    group.barrier();
    const auto begin = std::chrono::steady_clock::now();
    group.all_reduce(tensor, lrun::ReduceOp::kSum)->wait();
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    at::Tensor time = at::full({1}, taken.count(), at::kDouble);
    group.all_reduce(time, lrun::ReduceOp::kMax)->wait();
    slowest.push_back(time.item<double>());
  }
  return lrun::bench::median(slowest);
}

}  // namespace

int main() {
  lrun::Session session({.timeout = std::chrono::seconds(60), .banner = false});
  lrun::Collectives& group = session.collectives();
  const at::Tensor bucket = group.allocate_bucket(kLargest / 4, at::kFloat);
  const at::Tensor own = at::zeros({kLargest / 4}, at::kFloat);
  return lrun::bench::take_turns(session.is_rank_zero(), [&](std::istream& order) {
    std::int64_t bytes = 0;
    int repetitions = 0;
    order >> bytes >> repetitions;
    Figures figures{{"own", measure(group, own.narrow(0, 0, bytes / 4), repetitions)}};
    if (group.name() == "shm") figures["bucket"] = measure(group, bucket.narrow(0, 0, bytes / 4), repetitions);
    return figures;
  });
}
