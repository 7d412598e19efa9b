#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <lrun/export.h>
#include <lrun/gradient_sync.h>
#include <lrun/world.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace lrun {

class Collectives;
class Replicas;
struct WrapOptions;

/// How one wrapped module trains: what happens around the forward and the backward of its steps. Session::wrap() makes
/// one for each model; lrun's own are behind 'ddp', 'dp' and 'ddp2', and register_strategy() adds yours.
///
/// Threads  the training thread.
class LRUN_EXPORT Strategy {
 public:
  virtual ~Strategy();

  /// Before each training forward. Tells the launcher that a step begins, then calls place_module() and
  /// prepare_forward().
  void begin_forward();

  /// Runs a training step; when it throws before its backward() began, gradient_sync() counts it: see
  /// GradientSync::attempt().
  void attempt(const std::function<void()>& step);

  /// Before each forward, of a training step or not: brings parameters and buffers back to the devices on which they
  /// were wrapped, where something moved them, such as load() of an archive from another device. Default: nothing.
  virtual void place_module();

  /// Whether the tensors of the batch of this step are to be shown to look_at_batch() before backward(); see
  /// lrun/guards.h. Default: no.
  [[nodiscard]] virtual bool compares_batches() const;
  virtual void look_at_batch(const std::vector<at::Tensor>& tensors);  ///< Default: nothing.

  /// Runs backward, and whatever makes the gradients those of all ranks. \return `loss`, detached.
  /// \throws std::invalid_argument  `loss` is undefined or has more than one element (lrun's own strategies).
  virtual at::Tensor backward(const at::Tensor& loss) = 0;

  /// Rank 0's buffers to all ranks; collective. Default: nothing.
  virtual void broadcast_buffers();

  /// What Model::no_sync() returns. Default: \throws lrun::Unsupported.
  [[nodiscard]] virtual NoSyncGuard no_sync();

  /// What averages the gradients, where that is lrun's; else null, the default.
  [[nodiscard]] virtual GradientSync* gradient_sync();

  /// Several devices in this process: a batch is split over them. Null, the default: one part, on the session's device.
  [[nodiscard]] virtual Replicas* replicas();

 protected:
  Strategy() = default;
  Strategy(Strategy&&) = default;
  Strategy& operator=(Strategy&&) = default;

 private:
  virtual void prepare_forward() = 0;
};

/// What a strategy is made from.
struct StrategyContext {
  std::shared_ptr<torch::nn::Module> module;  ///< On `device`, with this rank's own parameters.
  Collectives& collectives;                   ///< Outlives the strategy.
  const World& world;
  at::Device device;
  const WrapOptions& options;
};

/// \return never null.
using StrategyMaker = std::function<std::unique_ptr<Strategy>(const StrategyContext& context)>;

/// Adds a strategy of your own under a name for SessionOptions::strategy and LRUN_STRATEGY (the seeds' configure_ddp).
/// It is made anew for each wrap(), has the ranks that the launcher gave, and one device a process.
///
/// Threads  any; before the session that uses it.
/// \throws std::invalid_argument  the name is empty, one of lrun's own, or registered already; there is no maker.
LRUN_EXPORT void register_strategy(const std::string& name, StrategyMaker maker);

}  // namespace lrun
