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

/// How one wrapped module trains: what happens around the forward and backward of its steps. Session::wrap() makes one
/// for each model. lrun has 'ddp', 'dp' and 'ddp2'; register_strategy() adds your own.
///
/// Threads  the training thread.
class LRUN_EXPORT Strategy {
 public:
  virtual ~Strategy();

  /// Called before each training forward. Reports progress to the launcher, then calls place_module() and
  /// prepare_forward().
  void begin_forward();

  /// Runs a training step. If it throws before its backward() begins, gradient_sync() counts it: see
  /// GradientSync::attempt().
  void attempt(const std::function<void()>& step);

  /// Called before each forward, also in evaluation. Moves parameters and buffers back to the devices on which they
  /// were wrapped, for example after load() of an archive from another device. Default: nothing.
  virtual void place_module();

  /// Whether look_at_batch() wants the tensors of this step's batch before backward(); see lrun/guards.h. Default: no.
  [[nodiscard]] virtual bool compares_batches() const;
  virtual void look_at_batch(const std::vector<at::Tensor>& tensors);  ///< Default: nothing.

  /// Runs backward and combines the gradients of all ranks. \return `loss`, detached.
  /// \throws std::invalid_argument  `loss` is undefined or has more than one element (lrun's own strategies).
  virtual at::Tensor backward(const at::Tensor& loss) = 0;

  /// Copies rank 0's buffers to all ranks; collective. Default: nothing.
  virtual void broadcast_buffers();

  /// Returns the guard of Model::no_sync(). Default: \throws lrun::Unsupported.
  [[nodiscard]] virtual NoSyncGuard no_sync();

  /// The GradientSync that averages the gradients; null, the default, if the strategy has none.
  [[nodiscard]] virtual GradientSync* gradient_sync();

  /// The replicas over which a batch is split; null, the default: the batch is one part on the session's device.
  [[nodiscard]] virtual Replicas* replicas();

 protected:
  Strategy() = default;
  Strategy(Strategy&&) = default;             ///< For subclasses that can be moved.
  Strategy& operator=(Strategy&&) = default;  ///< For subclasses that can be moved.

 private:
  virtual void prepare_forward() = 0;
};

/// The arguments of a StrategyMaker.
struct StrategyContext {
  std::shared_ptr<torch::nn::Module> module;  ///< On `device`, with this rank's own parameters.
  Collectives& collectives;                   ///< Outlives the strategy.
  const World& world;                         ///< The place of this process in the run.
  at::Device device;                          ///< Session::device().
  const WrapOptions& options;                 ///< Of wrap(), completed by the session's.
};

/// \return never null.
using StrategyMaker = std::function<std::unique_ptr<Strategy>(const StrategyContext& context)>;

/// Registers a strategy of your own under a name for SessionOptions::strategy and LRUN_STRATEGY. Each wrap() makes a
/// new one. It has the ranks that the launcher started and one device per process.
///
/// Threads  any; before the session that uses it.
/// \throws std::invalid_argument  the name is empty, lrun's own, or already registered; or `maker` is empty.
LRUN_EXPORT void register_strategy(const std::string& name, StrategyMaker maker);

}  // namespace lrun
