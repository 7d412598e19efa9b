#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>
#include <lrun/gradient_sync.h>
#include <lrun/guards.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::detail {

/// The checks of one wrapped module. Steps count from 1: each is a backward() that averages gradients.
/// Threads: one at a time; operations are collective in the order of the group's others.
class TrainingChecks {
 public:
  /// \param parameters   those that were wrapped, on one device.
  /// \param collectives  must outlive this object.
  TrainingChecks(std::vector<NamedTensor> parameters, Collectives& collectives, GuardOptions options);

  /// Whether look_at_batch() wants the batch of the next step.
  [[nodiscard]] bool compares_batches() const;
  [[nodiscard]] bool looks_for_unused() const;

  void look_at_batch(const std::vector<at::Tensor>& tensors);
  /// This rank's own, of one bucket. They stand for the batch if that was not given.
  void look_at_gradients(const at::Tensor& gradients);

  /// After the backward() of a step, before the update. Collective in the steps that compare something.
  /// \throws lrun::RankMismatch  on all ranks: a parameter differs.
  void end_step();

  [[nodiscard]] std::int64_t steps() const { return steps_; }  ///< That ended.

 private:
  /// A number that identifies a batch: equal numbers on two ranks mean the same batch.
  struct Fingerprint {
    enum class Of : std::int64_t { kNothing, kBatch, kGradients };

    Of of = Of::kNothing;
    std::uint32_t sum = 0;

    [[nodiscard]] std::int64_t number() const;
  };

  void compare(std::int64_t step, bool parameters, bool batches);
  void name_identical_batches() const;
  /// All that differ: a drift of the first must not hide that a later one is a different tensor.
  void report_different_parameters(std::int64_t step);
  /// Of rank 0's largest element, the largest of all ranks. Collective.
  [[nodiscard]] double share_of_difference(const at::Tensor& parameter);
  void name_unused(std::int64_t step);
  /// Every rank's `numbers`, in rank order.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> gather(const std::vector<std::int64_t>& numbers);
  void warn(const std::string& text) const;

  std::vector<NamedTensor> parameters_;
  Collectives& collectives_;
  GuardOptions options_;
  std::int64_t steps_ = 0;
  Fingerprint batch_;                               // of this step
  std::vector<std::vector<std::int64_t>> batches_;  // of each rank, the numbers of its first batches
  std::vector<std::size_t> unused_;                 // parameters that have not got a gradient yet
  bool drift_was_said_ = false;
};

/// A failed collective operation, with its meaning for the steps of this rank; any other error unchanged.
std::exception_ptr in_step(const std::exception_ptr& failure, std::int64_t step);

}  // namespace lrun::detail
