#pragma once

#include <ATen/ATen.h>
#include <lrun/collectives.h>

#include <chrono>
#include <memory>
#include <string>

namespace lrun::bench {

/// A group of one rank that gives itself out as two. In a world of one there are no buckets and nothing is summed; with
/// this group a rank that is alone does all that a rank of many does, and its gradients stay as they are.
///
/// Lifetime the group of one must outlive it.
class AsTwoRanks final : public Collectives {
 public:
  /// \param sums  asked at each reduction: adds up instead of averaging. With one rank NCCL averages by a kernel, and
  ///              adds up without one.
  AsTwoRanks(Collectives& alone, std::shared_ptr<const bool> sums) : alone_(alone), sums_(std::move(sums)) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world_size() const override { return 2; }
  [[nodiscard]] std::string name() const override { return alone_.name(); }
  [[nodiscard]] std::chrono::milliseconds timeout() const override { return alone_.timeout(); }

  at::Tensor allocate_bucket(std::int64_t count, at::ScalarType dtype) override {
    return alone_.allocate_bucket(count, dtype);
  }
  std::unique_ptr<CollectiveWork> all_reduce(at::Tensor tensor, ReduceOp op, std::uint64_t tag) override {
    return alone_.all_reduce(tensor, *sums_ ? ReduceOp::kSum : op, tag);
  }
  void broadcast(at::Tensor tensor, int root) override { alone_.broadcast(tensor, root); }
  void all_gather(at::Tensor output, const at::Tensor& input) override {
    alone_.all_gather(output.narrow(0, 0, 1), input);
    output[1].copy_(output[0]);
  }
  void reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override {
    alone_.reduce_scatter(output, input.narrow(0, 0, 1), op);
  }
  void barrier() override { alone_.barrier(); }
  void abort(const std::string& reason) override { alone_.abort(reason); }

 private:
  Collectives& alone_;
  std::shared_ptr<const bool> sums_;  // shared: with the program, which changes it
};

}  // namespace lrun::bench
