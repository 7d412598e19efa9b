#pragma once

#include <lrun/export.h>
#include <lrun/model.h>
#include <lrun/session.h>

#include <memory>

namespace lrun {

/// Training where ranks have different numbers of batches (Remainder::kUneven, data that each rank reads for itself).
/// Ranks that are done keep taking part, so that nobody waits for them in vain:
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
/// Average  over the A ranks that have a batch in the step: grad_i = (1/A) · Σ_r grad_i^(r). A batch counts the same
///          however few ranks are left; torch's Join divides by the world size unless told otherwise.
/// State    all ranks take all steps, so that parameters and optimizers stay equal on all of them, also where a rank
///          owns a part of the optimizer's state. Put into the second loop what changes either (clipping, schedulers).
/// Buffers  are those of the lowest rank that has a batch, on all ranks at the end, also where
///          WrapOptions::broadcast_buffers is off.
/// Cost     an all_gather of one byte a step.
/// Limits   gradients that are accumulated under no_sync() are one step: call begin_step() before its last batch only.
///          A model with SyncBatchNorm is refused, since its forward is collective.
/// Threads  the training thread.
class LRUN_EXPORT Join {
 public:
  /// \param session, model  must outlive this object.
  /// \throws lrun::Unsupported  the model has a SyncBatchNorm; a strategy of your own without GradientSync.
  template <class Module>
  Join(Session& session, Model<Module>& model) : Join(*model.module(), model.strategy(), session.collectives()) {}
  Join(torch::nn::Module& module, Strategy& strategy, Collectives& collectives);
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  /// This rank has a batch for the next step. Collective with begin_step() and others_go_on() of the others.
  void begin_step();

  /// This rank has none. \return false when no rank has: all are at the end, and begin_step() may begin another epoch.
  [[nodiscard]] bool others_go_on();

  /// Gradients of the others' batches, averaged; this rank adds nothing. After zero_grad(), as a step with a batch.
  void train_step_without_batch();

 private:
  struct State;

  bool agree(bool has_batch);

  std::unique_ptr<State> state_;
};

}  // namespace lrun
