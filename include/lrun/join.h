#pragma once

#include <lrun/export.h>
#include <lrun/model.h>
#include <lrun/session.h>

#include <memory>

namespace lrun {

/// Trains with different numbers of batches per rank (Remainder::kUneven, or data that each rank reads for itself).
/// Ranks that have run out of batches keep taking part in the steps of the others:
///
///     lrun::Join join(session, model);
///     for (const auto& batch : *loader) {
///       join.begin_step();
///       optimizer.zero_grad();
///       model.train_step(batch, step);
///       optimizer.step();
///     }
///     while (join.others_go_on()) {
///       optimizer.zero_grad();
///       join.train_step_without_batch();
///       optimizer.step();
///     }
///
/// Average  over the A ranks that have a batch in the step: grad_i = (1/A) · Σ_r grad_i^(r). Every batch has the same
///          weight, however few ranks are left; torch's Join divides by the world size by default.
/// State    all ranks take all steps, so that parameters and optimizers stay equal on all ranks, also when each rank
///          owns a part of the optimizer's state. Repeat in the second loop whatever else changes them (clipping,
///          schedulers).
/// Buffers  all ranks end with the buffers of the lowest rank that had a batch last, even if
///          WrapOptions::broadcast_buffers is off.
/// Cost     an all_gather of one byte per step.
/// Limits   gradients accumulated under no_sync() are one step: call begin_step() before its last batch only. A model
///          with SyncBatchNorm is refused, because its forward is collective. So is a loss with all_gather_with_grad(),
///          which Join does not see beforehand: CollectiveMismatch in the first step in which a rank has no batch. Pad
///          the epoch instead (Remainder::kPad).
/// Threads  the training thread.
class LRUN_EXPORT Join {
 public:
  /// \param session, model  must outlive this object.
  /// \throws lrun::Unsupported  the model has a SyncBatchNorm, or its strategy has no GradientSync.
  template <class Module>
  Join(Session& session, Model<Module>& model) : Join(*model.module(), model.strategy(), session.collectives()) {}
  /// As above for the parts of a model.
  Join(torch::nn::Module& module, Strategy& strategy, Collectives& collectives);
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  /// Announces that this rank has a batch for the next step. Collective: all other ranks call begin_step() or
  /// others_go_on().
  void begin_step();

  /// Announces that this rank has no batch. \return false if no rank has one: the epoch is over on all ranks.
  [[nodiscard]] bool others_go_on();

  /// Averages the gradients of the others' batches; this rank contributes nothing. Call it after zero_grad(), as you
  /// would a step with a batch.
  void train_step_without_batch();

 private:
  struct State;

  bool agree(bool has_batch);

  std::unique_ptr<State> state_;
};

}  // namespace lrun
