#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <lrun/batch.h>
#include <lrun/device_transfer.h>
#include <lrun/export.h>
#include <lrun/gradient_sync.h>
#include <lrun/guards.h>
#include <lrun/replicas.h>
#include <lrun/strategy.h>

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace lrun {

class Collectives;

namespace detail {
class ModulePlacement;
}

/// How a module is wrapped.
struct WrapOptions {
  /// How gradients are packed. Default: the session's options; without a session GradientSyncOptions' defaults.
  std::optional<GradientSyncOptions> gradients = std::nullopt;
  /// Copies rank 0's buffers (running statistics, …) to all ranks before each training forward, as torch's DDP does.
  /// Turn it off for networks that are called several times before one backward() and must keep their own buffers.
  bool broadcast_buffers = true;
  /// Makes a replica for dp and ddp2. Default: the module's clone() (torch::nn::Cloneable), which copies all members;
  /// else its default constructor, with a warning, because only the program knows what it has set in the module since:
  ///
  ///     struct Net : torch::nn::Module { double scale = 1; … };
  ///     net->scale = 2;
  ///     auto model = session.wrap(net, lrun::WrapOptions{.make_replica = [=] {
  ///       auto replica = std::make_shared<Net>();
  ///       replica->scale = net->scale;
  ///       return replica;
  ///     }});
  ///
  /// In either case a replica gets the module's parameters, buffers and modes before each forward, and the options of
  /// torch's own modules in it (Dropout's p, BatchNorm's momentum, …).
  ModuleMaker make_replica = nullptr;
  /// The checks during training. Default: the session's options; without a session GuardOptions' defaults.
  std::optional<GuardOptions> guards = std::nullopt;
};

/// The common part of train_step() and the classic DistributedDataParallel: averages gradients over the ranks, with one
/// device per rank. Threads: the training thread.
class LRUN_EXPORT ReplicatedModule final : public Strategy {
 public:
  /// Checks that all ranks have the same model, then copies rank 0's parameters and buffers to all of them.
  /// \param collectives  must outlive this object.
  /// \throws lrun::RankMismatch  on all ranks; names the first parameter or buffer that differs in name, shape, dtype
  ///                             or requires_grad.
  /// \throws std::invalid_argument  another living model trains one of the parameters; names it.
  ReplicatedModule(std::shared_ptr<torch::nn::Module> module, Collectives& collectives, const WrapOptions& options);
  ~ReplicatedModule() override;
  /// The source may only be destroyed or assigned to afterwards.
  ReplicatedModule(ReplicatedModule&&) noexcept;
  /// The source may only be destroyed or assigned to afterwards.
  ReplicatedModule& operator=(ReplicatedModule&&) noexcept;

  /// Called before each training forward. Copies rank 0's buffers to all ranks, unless that was turned off or no_sync()
  /// is in effect.
  /// \throws std::logic_error  a parameter was registered, replaced, removed or frozen after wrapping, or has another
  ///                           dtype or shape; names it.
  void prepare_forward() override;
  void place_module() override;
  /// Runs backward; afterwards all gradients are averaged. \return `loss`, detached.
  /// \throws std::invalid_argument  `loss` is undefined or has more than one element.
  /// \throws lrun::RankMismatch     the checks found a parameter that differs between ranks.
  at::Tensor backward(const at::Tensor& loss) override;
  /// Runs the backward of `loss` and then `rest`; gradients are averaged after both.
  at::Tensor backward(const at::Tensor& loss, const std::function<void()>& rest);
  /// Copies rank 0's buffers to all ranks, for example before every rank evaluates.
  void broadcast_buffers() override;

  [[nodiscard]] bool compares_batches() const override;
  void look_at_batch(const std::vector<at::Tensor>& tensors) override;
  [[nodiscard]] NoSyncGuard no_sync() override { return gradient_sync_.no_sync(); }
  [[nodiscard]] GradientSync* gradient_sync() override { return &gradient_sync_; }
  [[nodiscard]] std::vector<at::Tensor> parameters() const;  ///< Each once.

 private:
  class BufferBroadcast;

  void refuse_changed_parameters() const;

  // Shared with the program, which keeps using the module beside the wrapper.
  std::shared_ptr<torch::nn::Module> module_;
  std::unique_ptr<BufferBroadcast> buffers_;
  std::unique_ptr<detail::ModulePlacement> placement_;  // of parameters and buffers
  std::vector<NamedTensor> parameters_;                 // as they were wrapped
  GradientSync gradient_sync_;
  bool broadcast_buffers_;
};

namespace detail {

/// Collects the tensors of a batch; opaque parts have none.
struct CopyTensors {
  std::vector<at::Tensor>& tensors;
  void operator()(const at::Tensor& tensor) const { tensors.push_back(tensor); }
  template <class Opaque>
  void operator()(const Opaque&) const {}
};

/// Says what a step has to look like before the compiler does in its own words. \return true
template <class Module, class Batch, class Step>
consteval bool is_step() {
  static_assert(TensorTree<Batch>,
                "lrun: the batch has to be a Tensor, or vectors, pairs, tuples, maps or structs of Tensors such as "
                "torch::data::Example; lrun/batch.h says how other types become one");
  static_assert(std::is_invocable_v<Step&, Module&, const Batch&>,
                "lrun: step is called as step(Module&, const Batch&): with the wrapped module itself (NetImpl& of a "
                "TORCH_MODULE Net, not Net or a pointer) and with the type of the batch that was passed, const");
  if constexpr (std::is_invocable_v<Step&, Module&, const Batch&>) {
    static_assert(TensorTree<std::decay_t<std::invoke_result_t<Step&, Module&, const Batch&>>>,
                  "lrun: step has to return a Tensor, or vectors, pairs, tuples, maps or structs of Tensors "
                  "(lrun/batch.h): the outputs of the parts of a batch are concatenated along dimension 0");
  }
  return true;
}

/// The same of a step that returns the loss, without a step_end. \return true
template <class Module, class Batch, class Step>
consteval bool is_loss_step() {
  if constexpr (is_step<Module, Batch, Step>() && std::is_invocable_v<Step&, Module&, const Batch&>) {
    static_assert(std::is_convertible_v<std::invoke_result_t<Step&, Module&, const Batch&>, at::Tensor>,
                  "lrun: without a step_end, step has to return the loss of its part, a Tensor; with "
                  "train_step(batch, step, step_end), step_end(outputs, batch) returns it");
  }
  return true;
}

/// The same of a step_end. \return true
template <class Outputs, class Batch, class StepEnd>
consteval bool is_step_end() {
  static_assert(std::is_invocable_v<StepEnd&, const Outputs&, const Batch&>,
                "lrun: step_end is called as step_end(const Outputs&, const Batch&): with what step returns and with "
                "the whole batch");
  return true;
}

/// The same of a step_end that returns the loss. \return true
template <class Outputs, class Batch, class StepEnd>
consteval bool is_loss_step_end() {
  if constexpr (is_step_end<Outputs, Batch, StepEnd>() && std::is_invocable_v<StepEnd&, const Outputs&, const Batch&>) {
    static_assert(std::is_convertible_v<std::invoke_result_t<StepEnd&, const Outputs&, const Batch&>, at::Tensor>,
                  "lrun: step_end of train_step() has to return the loss of the whole batch, a Tensor");
  }
  return true;
}

}  // namespace detail

/// A module that trains under the strategy of its session; made by Session::wrap().
///
/// This is the way for new programs: the same code trains under every strategy, also dp and ddp2, and batches are moved
/// to the devices. DistributedDataParallel is for programs whose loop calls forward() and backward() itself, as torch's
/// does; it has one device per rank.
///
/// `step` is called as step(Module&, const Batch& part). It returns outputs whose tensors have the part's samples along
/// dimension 0: a Tensor, or any TensorTree. `step_end` is called under every strategy as step_end(outputs, batch),
/// with the outputs of all parts of this process concatenated along dimension 0 and with the whole batch. It computes
/// what couples samples (a softmax over the batch, a contrastive loss).
///
/// Parts   the batch is one part; under dp and ddp2 there is one part per device (split_evenly()), each on a replica
///         and in its own thread. There `step` runs several times at once and must protect shared state. It may call
///         other modules on the part's device, such as a teacher, but not train_step() or eval_step()
///         (std::logic_error). If there are several parts, an output without dimensions becomes a vector with one
///         element per part.
/// Devices every tensor of the batch is moved to session.device(), and those of a part to the part's device
///         (DeviceTransfer). The batch itself is not changed, and may be reused when the step returns.
/// Loading load() of the module and of the optimizer (torch::load) works between any two steps, with the same archive
///         on every rank and from any device: each step moves the module back to its devices.
/// Classic under dp and ddp2 a program that calls the module's forward() and backward() itself would train on one
///         device only: such a backward() is std::logic_error.
/// Threads the training thread.
/// Lifetime must not outlive its Session.
template <class Module>
class Model {
 public:
  /// Session::wrap() makes one with the strategy of its session.
  Model(std::shared_ptr<Module> module, std::unique_ptr<Strategy> strategy, at::Device device)
      : module_(std::move(module)), strategy_(std::move(strategy)), device_(device), transfer_(device) {}

  /// Runs forward, loss and backward over one batch of this rank. Afterwards the gradients are averaged over all ranks
  /// (under no_sync(): accumulated on this rank). They are those of the whole batch, whatever the number of its parts.
  ///
  /// \return the loss of this rank's batch, a detached scalar.
  /// \throws std::invalid_argument  the loss has more than one element, or the batch cannot be split.
  /// \throws lrun::ReplicaFailed    `step` or its backward threw under dp or ddp2.
  /// \throws errors of Collectives, among them CollectiveMismatch if some ranks went on after a step that threw there.
  template <class Batch, class Step, class StepEnd>
  at::Tensor train_step(const Batch& batch, Step&& step, StepEnd&& step_end) {
    static_assert(detail::is_step<Module, Batch, Step>());
    at::Tensor loss;
    strategy_->attempt([&] {
      strategy_->begin_forward();
      const TransferWait wait(transfer_);
      const Batch whole = transfer_(batch);
      if (strategy_->compares_batches()) look_at(batch);
      const auto outputs = run_parts(batch, whole, step);
      static_assert(detail::is_loss_step_end<decltype(outputs), Batch, StepEnd>());
      loss = strategy_->backward(std::invoke(step_end, outputs, whole));
    });
    return loss;
  }

  /// As above for a `step` that returns the loss of its part, a mean over the part's samples. The loss of the batch is
  /// the mean of the parts' losses, weighted by their samples.
  template <class Batch, class Step>
  at::Tensor train_step(const Batch& batch, Step&& step) {
    static_assert(detail::is_loss_step<Module, Batch, Step>());
    return train_step(batch, step, [this](const at::Tensor& losses, const Batch& whole) {
      Replicas* replicas = strategy_->replicas();
      return replicas == nullptr ? losses : detail::weighted_mean(losses, samples_of(whole), replicas->size());
    });
  }

  /// As train_step(), without gradients and without communication. Setting the module's mode (train(), eval()) is up to
  /// the caller.
  /// \return what `step_end` returns.
  template <class Batch, class Step, class StepEnd>
  auto eval_step(const Batch& batch, Step&& step, StepEnd&& step_end) {
    static_assert(detail::is_step<Module, Batch, Step>());
    at::NoGradGuard no_grad;
    strategy_->place_module();
    const TransferWait wait(transfer_);
    const Batch whole = transfer_(batch);
    const auto outputs = run_parts(batch, whole, step);
    static_assert(detail::is_step_end<decltype(outputs), Batch, StepEnd>());
    return std::invoke(step_end, outputs, whole);
  }

  /// \return the outputs of `step` for all parts.
  template <class Batch, class Step>
  auto eval_step(const Batch& batch, Step&& step) {
    static_assert(detail::is_step<Module, Batch, Step>());
    return eval_step(batch, step, [](const auto& outputs, const Batch&) { return outputs; });
  }

  /// While the guard lives, train_step() accumulates gradients on this rank only; the next one without it averages
  /// everything that was accumulated. Divide the loss by the number of accumulated batches.
  /// \throws lrun::Unsupported  a strategy of your own that does not implement it.
  [[nodiscard]] NoSyncGuard no_sync() { return strategy_->no_sync(); }

  /// Copies rank 0's buffers to all ranks, for example before every rank evaluates. Collective.
  void broadcast_buffers() { strategy_->broadcast_buffers(); }

  [[nodiscard]] Module& operator*() const { return *module_; }                     ///< The wrapped module.
  [[nodiscard]] Module* operator->() const { return module_.get(); }               ///< As operator*.
  [[nodiscard]] const std::shared_ptr<Module>& module() const { return module_; }  ///< As operator*, for keeping it.
  /// Each parameter once, including those that several modules registered (tied weights).
  [[nodiscard]] std::vector<at::Tensor> parameters() const { return detail::distinct(module_->parameters()); }
  /// How this model trains.
  [[nodiscard]] Strategy& strategy() { return *strategy_; }
  /// \pre the strategy is one of lrun's: it averages gradients.
  [[nodiscard]] GradientSync& gradient_sync() { return *strategy_->gradient_sync(); }

 private:
  /// \param batch  on the caller's device. \param whole  the same on the first device.
  template <class Batch, class Step>
  auto run_parts(const Batch& batch, const Batch& whole, Step& step) {
    using Outputs = std::decay_t<std::invoke_result_t<Step&, Module&, const Batch&>>;
    Replicas* replicas = strategy_->replicas();
    if (replicas == nullptr) return Outputs(std::invoke(step, *module_, whole));
    const std::vector<Batch> parts = split_batch(whole, replicas->size());
    // Other devices copy their parts from the caller's device: the first device is busy with its own part.
    const auto elsewhere = replicas->spans_devices() ? split_batch(batch, replicas->size()) : std::vector<Batch>();
    std::vector<std::optional<Outputs>> outputs(parts.size());
    replicas->follow_module();
    replicas->run(parts.size(), [&](std::size_t index) {
      auto& replica = dynamic_cast<Module&>(replicas->module(index));
      DeviceTransfer& transfer = replicas->transfer(index);
      const TransferWait wait_for_part(transfer);
      const Batch part = transfer(replicas->device(index) == device_ ? parts[index] : elsewhere[index]);
      outputs[index].emplace(std::invoke(step, replica, part));
    });
    return detail::join_outputs(outputs,
                                [&](const std::vector<at::Tensor>& column) { return replicas->gather(column); });
  }

  template <class Batch>
  void look_at(Batch batch) {
    std::vector<at::Tensor> tensors;
    BatchTraits<Batch>::for_each_tensor(batch, detail::CopyTensors{tensors});
    strategy_->look_at_batch(tensors);
  }

  template <class Batch>
  static std::int64_t samples_of(const Batch& batch) {
    Batch copy = batch;
    return detail::count_samples(detail::tensors_of(copy));
  }

  std::shared_ptr<Module> module_;  // shared with the program, which keeps it for checkpoints
  std::unique_ptr<Strategy> strategy_;
  at::Device device_;
  DeviceTransfer transfer_;
};

}  // namespace lrun
