#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <lrun/batch.h>
#include <lrun/export.h>
#include <lrun/model.h>
#include <lrun/session.h>

#include <concepts>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lrun {

class Collectives;

namespace detail {
/// Returns its argument. \throws lrun::Unsupported  each rank of the group splits batches over several devices.
LRUN_EXPORT Collectives& one_device_a_rank(Collectives& collectives);
}  // namespace detail

/// The classic form of distributed data parallel: wrap the module, call forward(), call backward() on the loss.
///
///     lrun::DistributedDataParallel ddp(net, session);  // std::shared_ptr<Net>; of a TORCH_MODULE: net.ptr()
///     auto loss = torch::nll_loss(ddp.forward(images.to(session.device())), labels.to(session.device()));
///     loss.backward();     // gradients are averaged over all ranks when it returns
///
/// For programs that were written for torch's DistributedDataParallel, whose loop calls forward() and backward()
/// itself. Model (Session::wrap()) is the way for new ones: it trains under every strategy, also with several devices
/// per rank, and moves batches to them.
///
/// See GradientSync for order, results and limits. Under no_grad forward() is the module's own, and nothing is
/// communicated.
///
/// Threads  the training thread; backward() may run its hooks on other threads.
/// Lifetime the session or `collectives` must outlive it.
template <class Module>
class DistributedDataParallel {
 public:
  /// Copies rank 0's parameters and buffers to all ranks.
  /// \throws lrun::Unsupported      the group belongs to a session under dp or ddp2 with several devices: only
  ///                                train_step() of Session::wrap() splits batches over them.
  /// \throws lrun::RankMismatch     on all ranks.
  /// \throws std::invalid_argument  another living model trains one of the parameters; names it.
  DistributedDataParallel(std::shared_ptr<Module> module, Collectives& collectives, WrapOptions options = {})
      : module_(module), replicated_(std::move(module), detail::one_device_a_rank(collectives), options) {}

  /// As above over the ranks of a session: also moves the module to the session's device. The tensors stay the same
  /// objects, so the optimizer may be made before, and Session::optimizer() takes the groups of parameters().
  /// \param options  what is not given is the session's.
  DistributedDataParallel(std::shared_ptr<Module> module, Session& session,
                          const std::optional<WrapOptions>& options = std::nullopt)
      : DistributedDataParallel(module, session.collectives(), session.prepare(module.get(), options)) {}

  /// Calls the module's forward with these arguments and returns its result. A forward that throws counts as a step: if
  /// the program goes on, ranks on which it did not throw get CollectiveMismatch.
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    using Outputs = std::decay_t<decltype(module_->forward(std::forward<Arguments>(arguments)...))>;
    if (!at::GradMode::is_enabled()) return Outputs(module_->forward(std::forward<Arguments>(arguments)...));
    std::optional<Outputs> outputs;
    replicated_.attempt([&] {
      replicated_.begin_forward();
      outputs.emplace(module_->forward(std::forward<Arguments>(arguments)...));
    });
    watch(*outputs);
    return *std::move(outputs);
  }
  /// As forward().
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  /// While the guard lives, backward() only accumulates on this rank; see GradientSync.
  [[nodiscard]] NoSyncGuard no_sync() { return replicated_.no_sync(); }

  /// Copies rank 0's buffers to all ranks; collective.
  void broadcast_buffers() { replicated_.broadcast_buffers(); }

  /// The wrapped module.
  [[nodiscard]] const std::shared_ptr<Module>& module() const { return module_; }
  [[nodiscard]] std::vector<at::Tensor> parameters() const { return replicated_.parameters(); }  ///< Each once.
  /// Averages the gradients.
  [[nodiscard]] GradientSync& gradient_sync() { return *replicated_.gradient_sync(); }

 private:
  void watch(const at::Tensor& output) { replicated_.gradient_sync()->watch(output); }
  template <class Element>
  void watch(const std::vector<Element>& outputs) {
    for (const auto& output : outputs) watch(output);
  }
  template <class First, class Second>
  void watch(const std::pair<First, Second>& outputs) {
    watch(outputs.first), watch(outputs.second);
  }
  template <class... Elements>
  void watch(const std::tuple<Elements...>& outputs) {
    std::apply([this](const auto&... output) { (watch(output), ...); }, outputs);
  }
  // Other types are not watched: the first parameter that gets a gradient begins their synchronisation.
  template <class Other>
  void watch(const Other&) {}

  std::shared_ptr<Module> module_;  // shared with the program, which keeps it for checkpoints
  ReplicatedModule replicated_;
};

}  // namespace lrun
