#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>
#include <lrun/gradient_sync.h>
#include <lrun/optimizer_shards.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::optim {
class Optimizer;
class OptimizerParamGroup;
}  // namespace torch::optim
namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace lrun {

/// Scales the learning rates of an optimizer: strategy 'horovod' multiplies them by the number of ranks, because the
/// effective batch grows with it (the linear rule: Goyal et al., arXiv 1706.02677). Value.
struct LRUN_EXPORT LearningRateScale {
  int factor = 1;     ///< By which rates are multiplied.
  bool says = false;  ///< The change, on stderr.

  /// Scales the rates of all groups, and the default for later groups, of an optimizer with the program's own rates.
  /// \throws lrun::Unsupported  the factor is not 1 and the options do not implement get_lr() and set_lr().
  void apply(torch::optim::Optimizer& optimizer) const;
  /// Adds the factor, unless it is 1, to an archive of the optimizer.
  void save(torch::serialize::OutputArchive& archive) const;
  /// Rescales an optimizer that took its rates from `archive`, where they may have been saved with another factor.
  void load(torch::serialize::InputArchive& archive, torch::optim::Optimizer& optimizer) const;
};

namespace detail {

/// The groups with each tensor once. \throws std::invalid_argument  a tensor is in two groups.
LRUN_EXPORT std::vector<torch::optim::OptimizerParamGroup> distinct(
    std::vector<torch::optim::OptimizerParamGroup> groups);

/// An evaluation of the loss, as this rank counts it. Value.
struct Evaluation {
  std::uint64_t update = 0;  ///< The calls of step(closure) so far.
  std::uint64_t number = 0;  ///< Within the update.
};

/// Evaluates `closure` with gradients enabled. \return the mean of the ranks' losses.
/// \throws lrun::CollectiveMismatch  on all ranks: another rank is in another evaluation.
LRUN_EXPORT at::Tensor mean_loss(const std::function<at::Tensor()>& closure, Collectives* collectives,
                                 const Evaluation& evaluation);

/// For static assertions that depend on a template.
template <class>
inline constexpr bool kNever = false;

/// Torch's optimizer with the factor of the learning rates in its archives, also when torch saves and loads them.
template <class TorchOptimizer>
class ScaledOptimizer : public TorchOptimizer {
 public:
  static_assert(!std::is_final_v<TorchOptimizer>, "lrun::Optimizer derives from torch's, which must not be final");

  template <class Parameters, class Options>
  ScaledOptimizer(Parameters&& parameters, const Options& options, const LearningRateScale& scale)
      : TorchOptimizer(std::forward<Parameters>(parameters), options), scale_(scale) {
    scale_.apply(*this);
  }
  void save(torch::serialize::OutputArchive& archive) const override {
    TorchOptimizer::save(archive);
    scale_.save(archive);
  }
  void load(torch::serialize::InputArchive& archive) override {
    TorchOptimizer::load(archive);
    scale_.load(archive, *this);
  }

 private:
  LearningRateScale scale_;
};

}  // namespace detail

/// An optimizer of torch over the parameters of a wrapped model; made by Session::optimizer(). The calls are the same
/// under strategies that split the optimizer's state over the ranks.
///
/// Threads: the training thread.
template <class TorchOptimizer>
class Optimizer {
 public:
  /// \param parameters   tensors or parameter groups, the same on all ranks. A parameter that occurs twice is updated
  ///                     once.
  /// \param options      what torch's optimizer takes.
  /// \param collectives  the ranks that train the parameters; must outlive this object. Null, or left out: this process
  ///                     alone.
  /// \param splits_state splits the state over these ranks; see OptimizerShards.
  /// \param scale        for the learning rates of `options` and groups.
  /// \throws std::invalid_argument  a parameter is in two groups.
  template <class Parameters, class Options>
  Optimizer(Parameters&& parameters, const Options& options, Collectives* collectives, bool splits_state,
            const LearningRateScale& scale = {})
      : optimizer_(detail::distinct(std::forward<Parameters>(parameters)), options, scale), collectives_(collectives) {
    if (splits_state && collectives != nullptr) shards_.emplace(optimizer_, *collectives);
  }
  /// As above for this process alone.
  template <class Parameters, class Options>
  Optimizer(Parameters&& parameters, const Options& options)
      : Optimizer(std::forward<Parameters>(parameters), options, nullptr, false) {}
  /// Ill-formed: in earlier versions ranks alone meant that they split the state.
  template <class Parameters, class Options>
  Optimizer(Parameters&& parameters, const Options& options, Collectives* collectives)
      : Optimizer(std::forward<Parameters>(parameters), options, collectives, false) {
    static_assert(detail::kNever<Options>,
                  "lrun: an Optimizer over ranks has to be told whether they split its state: (parameters, options, "
                  "collectives, splits_state)");
  }

  /// Sets the gradients to undefined (C++'s default), or to zero in place.
  void zero_grad(bool set_to_none = true) { optimizer_.zero_grad(set_to_none); }

  /// Performs one update from the averaged gradients, the same on every rank. Collective if the state is split.
  void step() {
    place_loaded_state();
    shards_ ? shards_->step(optimizer_) : static_cast<void>(optimizer_.step());
  }

  /// Performs one update by an optimizer that evaluates the loss itself, maybe several times (LBFGS):
  ///
  ///     auto optimizer = session.optimizer<torch::optim::LBFGS>(
  ///         model, torch::optim::LBFGSOptions(1).line_search_fn("strong_wolfe"));
  ///     optimizer.step([&] {
  ///       optimizer.zero_grad();
  ///       return model.train_step(batch, step);
  ///     });
  ///
  /// `closure` clears the gradients, computes loss and gradients of this rank's batch with train_step(), and returns
  /// the loss. The optimizer sees the mean of all ranks' losses beside the averaged gradients, so that every rank takes
  /// the same decisions: as one process on the batches of all ranks, if these have equally many samples. Collective.
  ///
  /// If the state is split, the closure is evaluated once, before the update; optimizers that need more (LBFGS) are
  /// refused when they are made.
  ///
  /// Cost    one all_gather of three numbers per evaluation, beside the closure's own.
  /// Limits  each evaluation is a step of training of its own for checks (GuardOptions) and Join: with batches that run
  ///         out on some ranks (Join), call step() without a closure. Decisions are equal if the ranks compute equal
  ///         bits: equal processors and numbers of threads. If ranks evaluate the loss differently often, the next
  ///         evaluation, or whatever collective operation comes first, is a CollectiveMismatch on all of them.
  /// \return the mean loss of the first evaluation, a detached scalar.
  /// \throws std::invalid_argument  the closure returned no loss, or one of several elements.
  /// \throws what `closure` throws, and errors of Collectives.
  at::Tensor step(const std::function<at::Tensor()>& closure) {
    place_loaded_state();
    detail::Evaluation evaluation{.update = ++updates_};
    const auto mean_loss = [&] {
      ++evaluation.number;
      return detail::mean_loss(closure, collectives_, evaluation);
    };
    if (!shards_) return optimizer_.step(mean_loss);
    at::Tensor loss = mean_loss();
    shards_->step(optimizer_);
    return loss;
  }

  /// While it lives, torch's optimizer on one rank, or on all ranks, has the whole state.
  class WholeState {
   public:
    /// Made by whole_state(). The optimizer must outlive it.
    WholeState(const Optimizer& optimizer, int rank) : optimizer_(optimizer) {
      if (optimizer_.shards_) optimizer_.shards_->gather_state(optimizer_.optimizer_, rank);
    }
    WholeState(const WholeState&) = delete;
    WholeState& operator=(const WholeState&) = delete;
    ~WholeState() {
      if (optimizer_.shards_) optimizer_.shards_->drop_foreign_state(optimizer_.optimizer_);
    }

   private:
    const Optimizer& optimizer_;
  };

  /// Gathers the whole state on `rank` (kAllRanks: on every rank), for saving it. The saved state can be loaded under
  /// any strategy and world size. Collective if the state is split: every rank calls it.
  [[nodiscard]] WholeState whole_state(int rank = 0) { return {*this, rank}; }

  /// Writes what torch's own optimizer writes, with the whole state, into the archive of `rank` (kAllRanks: of every
  /// rank); archives of other ranks are unspecified. Also writes the factor of scaled learning rates. Collective as
  /// whole_state().
  void save(torch::serialize::OutputArchive& archive, int rank = 0) const {
    const WholeState whole(*this, rank);
    optimizer_.save(archive);
  }

  /// Reads what save() or torch's own optimizer wrote, and keeps this rank's part. Every rank reads the whole state.
  /// From the next step() on the state is on the parameters' device, whatever device the archive has. Learning rates
  /// that were scaled for another number of ranks, or not scaled, are rescaled for this run.
  void load(torch::serialize::InputArchive& archive) {
    optimizer_.load(archive);
    if (shards_) shards_->drop_foreign_state(optimizer_);
    was_loaded_ = true;  // the parameters may be on another device until the next forward, loaded like it
  }

  /// Torch's own optimizer, for parameter groups and schedulers. If the state is split it has this rank's part of it:
  /// call step() and save() of this class instead. It may load a whole state by itself, which stays on the archive's
  /// device.
  [[nodiscard]] TorchOptimizer& operator*() { return optimizer_; }
  /// As operator*.
  [[nodiscard]] TorchOptimizer* operator->() { return &optimizer_; }

  /// How the state is split; empty if every rank has the whole state.
  [[nodiscard]] const std::optional<OptimizerShards>& shards() const { return shards_; }

 private:
  void place_loaded_state() {
    if (std::exchange(was_loaded_, false)) detail::place_state(optimizer_);
  }

  // torch::save() takes a const value, and the whole state is there only while it is saved
  mutable detail::ScaledOptimizer<TorchOptimizer> optimizer_;
  Collectives* collectives_;  // null: this process alone
  mutable std::optional<OptimizerShards> shards_;
  std::uint64_t updates_ = 0;  // with a closure
  bool was_loaded_ = false;
};

/// For torch::save(optimizer, ...): as save() with kAllRanks, so that each rank writes the whole state. If the state is
/// split every rank calls it, each with a stream or file of its own.
template <class TorchOptimizer>
torch::serialize::OutputArchive& operator<<(torch::serialize::OutputArchive& archive,
                                            const Optimizer<TorchOptimizer>& optimizer) {
  optimizer.save(archive, kAllRanks);
  return archive;
}

/// For torch::load(optimizer, ...): as load().
template <class TorchOptimizer>
torch::serialize::InputArchive& operator>>(torch::serialize::InputArchive& archive,
                                           Optimizer<TorchOptimizer>& optimizer) {
  optimizer.load(archive);
  return archive;
}

}  // namespace lrun
