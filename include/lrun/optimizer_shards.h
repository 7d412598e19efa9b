#pragma once

#include <lrun/export.h>

#include <memory>

namespace at {
class Tensor;
}
namespace torch::optim {
class Optimizer;
}

namespace lrun {

class Collectives;

/// Splits the state of an optimizer over the ranks (ZeRO stage 1; Rajbhandari et al., arXiv 1910.02054).
///
/// One rank owns each parameter: parameters are assigned by size, largest first, each to the rank with the fewest
/// bytes. On every rank the optimizer has all parameters in all its groups, but updates only those that the rank owns,
/// and has state for these alone. Their new values are then sent to all ranks. Parameters stay bitwise equal on all
/// ranks, and equal to those of an optimizer that is not split.
///
/// Works with optimizers that update each parameter from its own gradient and state and skip parameters whose gradient
/// is undefined: all of torch's but LBFGS. The next step() takes up parameters that were added later.
///
/// Memory   a rank has at most the mean of all ranks and one parameter. Saving needs the whole state for a moment, on
///          the rank that gets it.
/// Threads  the training thread. The optimizer is passed to each call, because its owner may be moved.
class LRUN_EXPORT OptimizerShards {
 public:
  /// Collective. State that the optimizer already has is kept for own parameters and dropped for others.
  /// \param collectives  must outlive this object.
  /// \throws lrun::Unsupported   for LBFGS, whose state belongs to all parameters at once.
  /// \throws lrun::RankMismatch  on all ranks: the optimizers have different parameters or groups.
  OptimizerShards(torch::optim::Optimizer& optimizer, Collectives& collectives);
  ~OptimizerShards();
  /// The source may only be destroyed or assigned to afterwards.
  OptimizerShards(OptimizerShards&&) noexcept;
  /// The source may only be destroyed or assigned to afterwards.
  OptimizerShards& operator=(OptimizerShards&&) noexcept;

  /// Performs one update of all parameters on all ranks. Drops state of others' parameters, for example after a whole
  /// state was loaded. Collective.
  /// \throws errors of Collectives.
  void step(torch::optim::Optimizer& optimizer);

  /// Gathers the state of all ranks in the optimizer of `rank` (kAllRanks: of every rank), as if it were not split.
  /// Collective. drop_foreign_state() undoes it.
  void gather_state(torch::optim::Optimizer& optimizer, int rank);
  /// Keeps the state of own parameters only. Not collective.
  void drop_foreign_state(torch::optim::Optimizer& optimizer) const;

  /// The rank that updates `parameter` and has its state. \throws std::out_of_range  it is not the optimizer's.
  [[nodiscard]] int owner(const at::Tensor& parameter) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {

/// Moves an optimizer's state to the device of its parameters: load() leaves it on the archive's device. Does nothing
/// on CPUs, and nothing if the parameters are on several devices.
LRUN_EXPORT void place_state(torch::optim::Optimizer& optimizer);

}  // namespace detail

/// As an argument for a rank: every rank.
inline constexpr int kAllRanks = -1;

}  // namespace lrun
