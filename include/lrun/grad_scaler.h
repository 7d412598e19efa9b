#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/export.h>
#include <lrun/optimizer.h>

#include <cstdint>
#include <functional>
#include <unordered_map>

namespace lrun {

class Collectives;

/// How a GradScaler adapts its scale. The defaults are those of torch.amp.GradScaler.
struct GradScalerOptions {
  double init_scale = 65536;            ///< The first scale.
  double growth_factor = 2;             ///< Of the scale after `growth_interval` steps that were not skipped; above 1.
  double backoff_factor = 0.5;          ///< Of the scale after a step that was skipped; between 0 and 1.
  std::int64_t growth_interval = 2000;  ///< In steps, one after the other.
  bool enabled = true;                  ///< False: scales by 1, checks nothing and skips no step.
};

/// Scales losses so that gradients of a forward in float16 do not become zero, and skips steps whose gradients became
/// infinite or NaN: torch.amp.GradScaler for programs of LibTorch, which has none. Parameters stay in float32; autocast
/// (at::autocast::set_autocast_enabled()) within `forward` computes in float16.
///
///     lrun::GradScaler scaler(session.collectives());
///     for (const auto& batch : *loader) {
///       optimizer.zero_grad();
///       model.train_step(batch, forward, [&](const at::Tensor& outputs, const auto& whole) {
///         return scaler.scale(torch::mse_loss(outputs, whole.target));
///       });
///       scaler.unscale(optimizer);  // only for what looks at gradients, such as clipping
///       lrun::clip_grad_norm(model.parameters(), 1.0);
///       scaler.step(optimizer);
///       scaler.update();
///     }
///
/// Result   all ranks skip a step, or none does, under every strategy: a gradient that is not finite on one rank is one
///          on all. So their scales stay equal. The loss that train_step() returns is scaled.
/// Several  models or optimizers may share one GradScaler: step() for each, then one update().
/// Accumulation: gradients of several batches have one scale; call unscale(), step() and update() after the last one.
/// Cost     one pass over the gradients, one all_reduce of three numbers, and on a GPU a wait for the result.
/// Threads  the training thread; scale() any.
class LRUN_EXPORT GradScaler {
 public:
  /// \param collectives  the ranks that train together; must outlive this object.
  /// \throws std::invalid_argument  an option is out of its range.
  explicit GradScaler(Collectives& collectives, const GradScalerOptions& options = {});

  /// `loss` times the scale, also of a loss in float16.
  [[nodiscard]] at::Tensor scale(const at::Tensor& loss) const;

  /// Divides the gradients of the optimizer's parameters by the scale, and finds out whether all are finite. step()
  /// does it where it was not called before. Collective.
  /// \throws std::logic_error       it was called since the last update(), or step() was.
  /// \throws std::invalid_argument  a gradient of float16, which has lost what scaling is for.
  /// \throws lrun::RankMismatch     on all ranks: their scales differ.
  void unscale(torch::optim::Optimizer& optimizer);
  /// As above.
  template <class TorchOptimizer>
  void unscale(Optimizer<TorchOptimizer>& optimizer) {
    unscale(*optimizer);
  }

  /// Performs the optimizer's step(), unless a gradient of any rank is infinite or NaN. Collective.
  /// \return false if the step was skipped.
  /// \throws std::logic_error  it was called since the last update().
  /// \throws as unscale() and the optimizer's step().
  bool step(torch::optim::Optimizer& optimizer);
  /// As above.
  template <class TorchOptimizer>
  bool step(Optimizer<TorchOptimizer>& optimizer) {
    return step_if_finite(*optimizer, [&] { optimizer.step(); });
  }

  /// Adapts the scale, after the steps of all optimizers.
  /// \throws std::logic_error  no gradients were checked since the last update().
  void update();

  [[nodiscard]] double get_scale() const;  ///< 1 if scaling is not enabled.

  /// Writes what torch's state_dict() has, under its names; nothing if scaling is not enabled. Call it after update().
  void save(torch::serialize::OutputArchive& archive) const;
  /// Reads what save() wrote, on every rank. Does nothing if scaling is not enabled.
  /// \throws lrun::CheckpointError  the archive has no such state.
  void load(torch::serialize::InputArchive& archive);

 private:
  /// The state of an optimizer since the last update().
  struct Check {
    bool found_inf = false;
    bool stepped = false;
  };

  bool step_if_finite(torch::optim::Optimizer& optimizer, const std::function<void()>& step);
  [[nodiscard]] bool any_rank(bool found_inf) const;

  Collectives* collectives_;
  GradScalerOptions options_;
  float scale_;                      // torch's is a float32, too
  std::int64_t growth_tracker_ = 0;  // steps since the scale changed
  std::unordered_map<const torch::optim::Optimizer*, Check> checks_;
};

}  // namespace lrun
