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
/// Every parameter has one rank that owns it: parameters go by size, largest first, each to the rank with the fewest
/// bytes. The optimizer has all parameters in all its groups on every rank, but updates only those that the rank owns,
/// and so has state for those alone; afterwards their new values go to all ranks. Parameters stay bitwise equal on all
/// ranks, and equal to those of an optimizer that is not split.
///
/// Fits optimizers that update each parameter from its own gradient and state, and pass by those whose gradient is
/// undefined: all of torch's but LBFGS. Parameters that are added later are taken up by the next step().
///
/// Memory   state of at most (the mean of a rank and one parameter). Saving needs the whole for a moment, on the rank
///          that gets it.
/// Threads  the training thread. The optimizer is given to each call, since its owner may be moved.
class LRUN_EXPORT OptimizerShards {
 public:
  /// Collective. State that the optimizer has already is kept for own parameters and dropped for others.
  /// \param collectives  must outlive this object.
  /// \throws lrun::Unsupported   LBFGS: its state belongs to all parameters at once.
  /// \throws lrun::RankMismatch  on all ranks; the optimizers have different parameters or groups.
  OptimizerShards(torch::optim::Optimizer& optimizer, Collectives& collectives);
  ~OptimizerShards();
  OptimizerShards(OptimizerShards&&) noexcept;
  OptimizerShards& operator=(OptimizerShards&&) noexcept;

  /// One update of all parameters on all ranks; state of others' parameters, for example of a whole state that was
  /// loaded, is dropped. Collective. \throws errors of Collectives.
  void step(torch::optim::Optimizer& optimizer);

  /// Brings the state of all ranks into the optimizer of `rank` (kAllRanks: of every rank), as if it were not split.
  /// Collective. The next drop_foreign_state() undoes it.
  void gather_state(torch::optim::Optimizer& optimizer, int rank);
  /// Keeps the state of own parameters only. Not collective.
  void drop_foreign_state(torch::optim::Optimizer& optimizer) const;

  /// The rank that updates `parameter` and has its state. \throws std::out_of_range  not one of the optimizer's.
  [[nodiscard]] int owner(const at::Tensor& parameter) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace detail {

/// Brings an optimizer's state to the device of its parameters: load() leaves it where the archive has it. Does nothing
/// on CPUs, and where the parameters are on several devices.
LRUN_EXPORT void place_state(torch::optim::Optimizer& optimizer);

}  // namespace detail

/// Where a rank is asked for: every rank.
inline constexpr int kAllRanks = -1;

}  // namespace lrun
