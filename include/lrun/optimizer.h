#pragma once

#include <lrun/export.h>
#include <lrun/gradient_sync.h>
#include <lrun/optimizer_shards.h>

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

/// What an optimizer makes of the learning rates that it is given: strategy 'horovod' multiplies them by the number of
/// ranks, as the effective batch grows with it (the linear rule: Goyal et al., arXiv 1706.02677). Value.
struct LRUN_EXPORT LearningRateScale {
  int factor = 1;
  bool says = false;  ///< On stderr: from what to what.

  /// Of an optimizer that was made with the program's own rates: all groups, and the defaults for groups to come.
  /// \throws lrun::Unsupported  a factor, and options that do not tell their learning rate.
  void apply(torch::optim::Optimizer& optimizer) const;
  /// Adds the factor to an archive of the optimizer, if there is one.
  void save(torch::serialize::OutputArchive& archive) const;
  /// Of an optimizer that took its rates from `archive`: they have the factor that was saved, or none.
  void load(torch::serialize::InputArchive& archive, torch::optim::Optimizer& optimizer) const;
};

namespace detail {

/// Tensors of each group once. \throws std::invalid_argument  a tensor that is in two groups.
LRUN_EXPORT std::vector<torch::optim::OptimizerParamGroup> distinct(
    std::vector<torch::optim::OptimizerParamGroup> groups);

/// Torch's optimizer, whose archives know the factor of their learning rates, whoever saves and loads them.
template <class TorchOptimizer>
class ScaledOptimizer : public TorchOptimizer {
 public:
  static_assert(!std::is_final_v<TorchOptimizer>, "lrun::Optimizer derives from torch's, which is not to be final");

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

/// An optimizer of torch over the parameters of a wrapped model; made by Session::optimizer(). A strategy that splits
/// the optimizer's state over the ranks does so behind the same calls.
///
/// Threads: the training thread.
template <class TorchOptimizer>
class Optimizer {
 public:
  /// \param parameters  tensors or parameter groups, alike on all ranks; each is updated once, however often it occurs.
  /// \param options     what torch's optimizer takes.
  /// \param split_over  null: every rank has the whole state. Else see OptimizerShards; must outlive this object.
  /// \param scale       of the learning rates of `options` and groups.
  /// \throws std::invalid_argument  a parameter that is in two groups.
  template <class Parameters, class Options>
  Optimizer(Parameters&& parameters, const Options& options, Collectives* split_over = nullptr,
            const LearningRateScale& scale = {})
      : optimizer_(detail::distinct(std::forward<Parameters>(parameters)), options, scale) {
    if (split_over != nullptr) shards_.emplace(optimizer_, *split_over);
  }

  /// Sets the gradients to undefined (C++'s default), or to zero in place.
  void zero_grad(bool set_to_none = true) { optimizer_.zero_grad(set_to_none); }

  /// One update from the averaged gradients: the same on every rank. Collective where the state is split.
  void step() {
    if (std::exchange(was_loaded_, false)) detail::place_state(optimizer_);
    shards_ ? shards_->step(optimizer_) : static_cast<void>(optimizer_.step());
  }

  /// While it lives, the torch optimizer of one rank, or of all, has the state of all ranks.
  class WholeState {
   public:
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

  /// The state of all ranks on `rank` (kAllRanks: on every one), for saving it. What is saved then can be loaded under
  /// any strategy and world size. Collective where the state is split: every rank calls it.
  [[nodiscard]] WholeState whole_state(int rank = 0) { return {*this, rank}; }

  /// Writes what torch's own optimizer writes, with the whole state, into the archive of `rank` (kAllRanks: of every
  /// rank); what others get is unspecified. Where learning rates are scaled, by what goes with it. Collective as
  /// whole_state().
  void save(torch::serialize::OutputArchive& archive, int rank = 0) const {
    const WholeState whole(*this, rank);
    optimizer_.save(archive);
  }

  /// Reads what save() or torch's own optimizer wrote, and keeps this rank's part. Every rank reads the whole; from
  /// the next step() on the state is where the parameters are, wherever the archive has it. Learning rates that were
  /// scaled for another number of ranks, or not at all, become those of this run.
  void load(torch::serialize::InputArchive& archive) {
    optimizer_.load(archive);
    if (shards_) shards_->drop_foreign_state(optimizer_);
    was_loaded_ = true;  // the parameters may be on another device until the next forward, loaded like it
  }

  /// torch's own optimizer: parameter groups, schedulers. Where the state is split it has this rank's part of it, and
  /// step() and save() are to be those of this class; it may load a whole state by itself, of the parameters' device:
  /// what is loaded through it stays where the archive has it.
  [[nodiscard]] TorchOptimizer& operator*() { return optimizer_; }
  [[nodiscard]] TorchOptimizer* operator->() { return &optimizer_; }

  /// How the state is split; nothing where every rank has the whole.
  [[nodiscard]] const std::optional<OptimizerShards>& shards() const { return shards_; }

 private:
  // torch::save() takes a const value, and the whole state is there only while it is saved
  mutable detail::ScaledOptimizer<TorchOptimizer> optimizer_;
  mutable std::optional<OptimizerShards> shards_;
  bool was_loaded_ = false;
};

/// For torch::save(optimizer, ...): as save() of all ranks, so that what each rank writes is whole. Where the state is
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
