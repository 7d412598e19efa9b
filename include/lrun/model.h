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
  /// How gradients are packed. Default: as the session says; without a session GradientSyncOptions' own.
  std::optional<GradientSyncOptions> gradients = std::nullopt;
  /// Rank 0's buffers (running statistics, …) go to all ranks before each training forward, as in torch's DDP. Off for
  /// networks that are called several times before one backward() and must keep their own.
  bool broadcast_buffers = true;
  /// Makes a replica for dp and ddp2. Default: the module's clone() (torch::nn::Cloneable), which copies all members;
  /// else its default constructor, and a warning, as only the program knows what was set in the module since:
  ///
  ///     struct Net : torch::nn::Module { double scale = 1; … };
  ///     net->scale = 2;
  ///     auto model = session.wrap(net, lrun::WrapOptions{.make_replica = [=] {
  ///       auto replica = std::make_shared<Net>();
  ///       replica->scale = net->scale;
  ///       return replica;
  ///     }});
  ///
  /// Each way a replica gets the module's parameters, buffers and modes before each forward, and the options of torch's
  /// own modules in it (Dropout's p, BatchNorm's momentum, …).
  ModuleMaker make_replica = nullptr;
  /// What is watched while training. Default: as the session says; without a session GuardOptions' own.
  std::optional<GuardOptions> guards = std::nullopt;
};

/// What train_step and the classic DistributedDataParallel have in common: gradients averaged over the ranks, one
/// device a rank. Threads: the training thread.
class LRUN_EXPORT ReplicatedModule final : public Strategy {
 public:
  /// Checks that the ranks agree, then gives all of them rank 0's parameters and buffers.
  /// \param collectives  must outlive this object.
  /// \throws lrun::RankMismatch  on all ranks; names the first parameter or buffer that differs in name, shape, dtype
  ///                             or requires_grad.
  /// \throws std::invalid_argument  a parameter that another living model trains; names it.
  ReplicatedModule(std::shared_ptr<torch::nn::Module> module, Collectives& collectives, const WrapOptions& options);
  ~ReplicatedModule() override;
  ReplicatedModule(ReplicatedModule&&) noexcept;
  ReplicatedModule& operator=(ReplicatedModule&&) noexcept;

  /// Before each training forward: sends rank 0's buffers out unless that was switched off or no_sync() is in effect.
  /// \throws std::logic_error  the module's parameters are not those that were wrapped: one was registered, replaced,
  ///                           removed or frozen since, or has another dtype or shape; names it.
  void prepare_forward() override;
  void place_module() override;
  /// Runs backward; afterwards all gradients are averaged. \return `loss`, detached.
  /// \throws std::invalid_argument  `loss` is undefined or has more than one element.
  /// \throws lrun::RankMismatch     the guards found a parameter that is not the same on all ranks.
  at::Tensor backward(const at::Tensor& loss) override;
  /// The same where the backward of `loss` is only the first part: gradients are averaged after `rest`.
  at::Tensor backward(const at::Tensor& loss, const std::function<void()>& rest);
  /// Rank 0's buffers to all ranks, for example before evaluating on every rank.
  void broadcast_buffers() override;

  [[nodiscard]] bool compares_batches() const override;
  void look_at_batch(const std::vector<at::Tensor>& tensors) override;
  [[nodiscard]] NoSyncGuard no_sync() override { return gradient_sync_.no_sync(); }
  [[nodiscard]] GradientSync* gradient_sync() override { return &gradient_sync_; }
  [[nodiscard]] std::vector<at::Tensor> parameters() const;  ///< Each once.

 private:
  class BufferBroadcast;

  void refuse_changed_parameters() const;

  // Owned together with the user, who keeps using the module beside the wrapper.
  std::shared_ptr<torch::nn::Module> module_;
  std::unique_ptr<BufferBroadcast> buffers_;
  std::unique_ptr<detail::ModulePlacement> placement_;  // of parameters and buffers
  std::vector<NamedTensor> parameters_;         // as they were wrapped
  GradientSync gradient_sync_;
  bool broadcast_buffers_;
};

namespace detail {

/// What can be seen of a batch.
struct CopyTensors {
  std::vector<at::Tensor>& tensors;
  void operator()(const at::Tensor& tensor) const { tensors.push_back(tensor); }
  template <class Opaque>
  void operator()(const Opaque&) const {}
};

}  // namespace detail

/// A module that trains under the strategy of its session; made by Session::wrap().
///
/// `step` is called as step(Module&, const Batch& part) and returns outputs whose tensors have the part's samples along
/// dimension 0: a Tensor, or anything that TensorTree describes. `step_end` is called as step_end(outputs, batch) with
/// the outputs of all parts of this process concatenated along dimension 0 and the whole batch; it is called under
/// every strategy, and computes what couples samples (a softmax over the batch, a contrastive loss).
///
/// Parts   one, the batch; under dp and ddp2 one a device (split_evenly()), each in its own thread and on a replica:
///         there `step` is called several times at once, protects what it shares, and calls modules, as a teacher's on
///         the part's device, no train_step() or eval_step() (std::logic_error). An output without dimensions becomes
///         a vector with one element a part when there are several.
/// Devices every tensor of the batch is moved to session.device(), and those of a part to the part's (DeviceTransfer).
///         The batch itself stays as it is, and is the caller's again when the step returns.
/// Loading load() of the module and of the optimizer (torch::load) works at any time between two steps, on every rank
///         the same archive, from whatever device that is of: each step brings the module back to its devices.
/// Classic under dp and ddp2 nothing splits the batch of a program that calls the module's forward() and backward()
///         itself instead of train_step(): such a backward() is std::logic_error.
/// Threads the training thread.
/// Lifetime must not outlive its Session.
template <class Module>
class Model {
 public:
  Model(std::shared_ptr<Module> module, std::unique_ptr<Strategy> strategy, at::Device device)
      : module_(std::move(module)), strategy_(std::move(strategy)), device_(device), transfer_(device) {}

  /// Forward, loss and backward over one batch of this rank; afterwards the gradients are averaged over all ranks
  /// (under no_sync(): accumulated on this one). They are those of the whole batch, however many parts it had.
  ///
  /// \return the loss, a detached scalar, of this rank's batch.
  /// \throws std::invalid_argument  the loss has more than one element; a batch that cannot be split.
  /// \throws lrun::ReplicaFailed    `step` or its backward threw under dp or ddp2. Errors of Collectives; among them
  ///                                 CollectiveMismatch where some ranks went on after a step that threw there.
  template <TensorTree Batch, class Step, class StepEnd>
  at::Tensor train_step(const Batch& batch, Step&& step, StepEnd&& step_end) {
    at::Tensor loss;
    strategy_->attempt([&] {
      strategy_->begin_forward();
      const TransferWait wait(transfer_);
      const Batch whole = transfer_(batch);
      if (strategy_->compares_batches()) look_at(batch);
      const auto outputs = run_parts(batch, whole, step);
      loss = strategy_->backward(std::invoke(step_end, outputs, whole));
    });
    return loss;
  }

  /// The same where `step` returns the loss of its part: a mean over its samples. That of the batch is the mean of the
  /// parts' losses, weighted by their samples.
  template <TensorTree Batch, class Step>
  at::Tensor train_step(const Batch& batch, Step&& step) {
    return train_step(batch, step, [this](const at::Tensor& losses, const Batch& whole) {
      Replicas* replicas = strategy_->replicas();
      return replicas == nullptr ? losses : detail::weighted_mean(losses, samples_of(whole), replicas->size());
    });
  }

  /// As train_step, without gradients and without communication; the module's mode (train(), eval()) is the caller's.
  /// \return what `step_end` returns.
  template <TensorTree Batch, class Step, class StepEnd>
  auto eval_step(const Batch& batch, Step&& step, StepEnd&& step_end) {
    at::NoGradGuard no_grad;
    strategy_->place_module();
    const TransferWait wait(transfer_);
    const Batch whole = transfer_(batch);
    const auto outputs = run_parts(batch, whole, step);
    return std::invoke(step_end, outputs, whole);
  }

  /// \return what `step` returns, of all parts.
  template <TensorTree Batch, class Step>
  auto eval_step(const Batch& batch, Step&& step) {
    return eval_step(batch, step, [](const auto& outputs, const Batch&) { return outputs; });
  }

  /// While the guard lives, train_step() accumulates gradients on this rank only; the next one without it averages all
  /// that was accumulated. Divide the loss by the number of accumulated batches.
  /// \throws lrun::Unsupported  a strategy of your own that has none.
  [[nodiscard]] NoSyncGuard no_sync() { return strategy_->no_sync(); }

  /// Rank 0's buffers to all ranks; collective. For example before evaluating on every rank.
  void broadcast_buffers() { strategy_->broadcast_buffers(); }

  [[nodiscard]] Module& operator*() const { return *module_; }
  [[nodiscard]] Module* operator->() const { return module_.get(); }
  [[nodiscard]] const std::shared_ptr<Module>& module() const { return module_; }
  /// Each once, also those that several modules registered (tied weights).
  [[nodiscard]] std::vector<at::Tensor> parameters() const { return detail::distinct(module_->parameters()); }
  [[nodiscard]] Strategy& strategy() { return *strategy_; }
  /// \pre the strategy is one of lrun's: it averages gradients.
  [[nodiscard]] GradientSync& gradient_sync() { return *strategy_->gradient_sync(); }

 private:
  /// \param batch  where the caller has it. \param whole  the same on the first device.
  template <class Batch, class Step>
  auto run_parts(const Batch& batch, const Batch& whole, Step& step) {
    using Outputs = std::decay_t<std::invoke_result_t<Step&, Module&, const Batch&>>;
    static_assert(
        TensorTree<Outputs>,
        "step must return a Tensor, or vectors, pairs, tuples, maps or structs of Tensors (lrun/batch.h): the "
        "outputs of the parts of a batch are concatenated along dimension 0");
    Replicas* replicas = strategy_->replicas();
    if (replicas == nullptr) return Outputs(std::invoke(step, *module_, whole));
    const std::vector<Batch> parts = split_batch(whole, replicas->size());
    // Other devices take their parts from where the batch is: the first one is busy with its own.
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
