#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <lrun/batch.h>
#include <lrun/export.h>
#include <lrun/gradient_sync.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace lrun {

class Collectives;

/// How a module is wrapped.
struct WrapOptions {
  GradientSyncOptions gradients;
  /// Rank 0's buffers (running statistics, …) go to all ranks before each training forward, as in torch's DDP. Off for
  /// networks that are called several times before one backward() and must keep their own.
  bool broadcast_buffers = true;
};

/// What train_step and the classic DistributedDataParallel have in common: the part without templates.
/// Threads: the training thread.
class LRUN_EXPORT ReplicatedModule {
 public:
  /// Checks that the ranks agree, then gives all of them rank 0's parameters and buffers.
  /// \param collectives  must outlive this object.
  /// \throws lrun::RankMismatch  on all ranks; names the first parameter or buffer that differs in name, shape, dtype
  ///                             or requires_grad.
  /// \throws std::invalid_argument  a parameter that another living model trains; names it.
  ReplicatedModule(std::shared_ptr<torch::nn::Module> module, Collectives& collectives, WrapOptions options);
  ~ReplicatedModule();
  ReplicatedModule(ReplicatedModule&&) noexcept;
  ReplicatedModule& operator=(ReplicatedModule&&) noexcept;

  /// Before each training forward: sends rank 0's buffers out unless that was switched off or no_sync() is in effect.
  /// \throws std::logic_error  the module's parameters are not those that were wrapped: one was registered, replaced,
  ///                           removed, frozen, converted or moved since; names it.
  void begin_forward();
  /// Runs backward; afterwards all gradients are averaged. \return `loss`, detached.
  /// \throws std::invalid_argument  `loss` is undefined or has more than one element.
  at::Tensor backward(const at::Tensor& loss);
  /// Rank 0's buffers to all ranks, for example before evaluating on every rank.
  void broadcast_buffers();

  [[nodiscard]] GradientSync& gradient_sync() { return gradient_sync_; }
  [[nodiscard]] std::vector<at::Tensor> parameters() const;

 private:
  class BufferBroadcast;

  void refuse_changed_parameters() const;

  // Owned together with the user, who keeps using the module beside the wrapper.
  std::shared_ptr<torch::nn::Module> module_;
  std::unique_ptr<BufferBroadcast> buffers_;
  std::vector<NamedTensor> parameters_;  // as they were wrapped
  GradientSync gradient_sync_;
  bool broadcast_buffers_;
};

namespace detail {
template <class Outputs>
inline constexpr bool kGatherable = false;
template <>
inline constexpr bool kGatherable<at::Tensor> = true;
template <class Element>
inline constexpr bool kGatherable<std::vector<Element>> = kGatherable<Element>;
template <class First, class Second>
inline constexpr bool kGatherable<std::pair<First, Second>> = kGatherable<First>&& kGatherable<Second>;
template <class... Elements>
inline constexpr bool kGatherable<std::tuple<Elements...>> = (kGatherable<Elements> && ...);
}  // namespace detail

/// A module that trains under the strategy of its session; made by Session::wrap().
///
/// `step` is called as step(Module&, const Batch& part) and returns outputs whose tensors have the part's samples along
/// dimension 0: a Tensor, or vectors, pairs and tuples of such. `step_end` is called as step_end(outputs, batch) with
/// the outputs of all parts of this process concatenated along dimension 0 and the whole batch; it is called under
/// every strategy, and computes what couples samples (a softmax over the batch, a contrastive loss). Under ddp there is
/// one part: the batch. Parts are moved to their device before `step`, the batch to session.device() before `step_end`.
///
/// Threads  the training thread.
/// Lifetime must not outlive its Session.
template <class Module>
class Model {
 public:
  Model(std::shared_ptr<Module> module, ReplicatedModule replicated, at::Device device)
      : module_(std::move(module)), replicated_(std::move(replicated)), device_(device) {}

  /// Forward, loss and backward over one batch of this rank; afterwards the gradients are averaged over all ranks
  /// (under no_sync(): accumulated on this one).
  ///
  /// \return the loss, a detached scalar, of this rank's batch.
  /// \throws std::invalid_argument  the loss has more than one element. Errors of Collectives.
  template <class Batch, class Step, class StepEnd>
  at::Tensor train_step(const Batch& batch, Step&& step, StepEnd&& step_end) {
    replicated_.begin_forward();
    const Batch part = to_device(batch, device_);
    const auto outputs = call_step(part, step);
    return replicated_.backward(std::invoke(step_end, outputs, part));
  }

  /// The same where `step` returns the loss of its part.
  template <class Batch, class Step>
  at::Tensor train_step(const Batch& batch, Step&& step) {
    return train_step(batch, step, [](const at::Tensor& loss, const Batch&) { return loss; });
  }

  /// As train_step, without gradients and without communication; the module's mode (train(), eval()) is the caller's.
  /// \return what `step_end` returns.
  template <class Batch, class Step, class StepEnd>
  auto eval_step(const Batch& batch, Step&& step, StepEnd&& step_end) {
    at::NoGradGuard no_grad;
    const Batch part = to_device(batch, device_);
    const auto outputs = call_step(part, step);
    return std::invoke(step_end, outputs, part);
  }

  /// \return what `step` returns.
  template <class Batch, class Step>
  auto eval_step(const Batch& batch, Step&& step) {
    return eval_step(batch, step, [](const auto& outputs, const Batch&) { return outputs; });
  }

  /// While the guard lives, train_step() accumulates gradients on this rank only; the next one without it averages all
  /// that was accumulated. Divide the loss by the number of accumulated batches.
  [[nodiscard]] NoSyncGuard no_sync() { return replicated_.gradient_sync().no_sync(); }

  /// Rank 0's buffers to all ranks; collective. For example before evaluating on every rank.
  void broadcast_buffers() { replicated_.broadcast_buffers(); }

  [[nodiscard]] Module& operator*() const { return *module_; }
  [[nodiscard]] Module* operator->() const { return module_.get(); }
  [[nodiscard]] const std::shared_ptr<Module>& module() const { return module_; }
  [[nodiscard]] std::vector<at::Tensor> parameters() const { return replicated_.parameters(); }
  [[nodiscard]] GradientSync& gradient_sync() { return replicated_.gradient_sync(); }

 private:
  template <class Batch, class Step>
  auto call_step(const Batch& part, Step& step) {
    using Outputs = std::decay_t<std::invoke_result_t<Step&, Module&, const Batch&>>;
    static_assert(detail::kGatherable<Outputs>,
                  "step must return a Tensor, or vectors, pairs or tuples of Tensors: the outputs of the parts of a "
                  "batch are concatenated along dimension 0");
    return Outputs(std::invoke(step, *module_, part));
  }

  std::shared_ptr<Module> module_;  // shared with the program, which keeps it for checkpoints
  ReplicatedModule replicated_;
  at::Device device_;
};

}  // namespace lrun
