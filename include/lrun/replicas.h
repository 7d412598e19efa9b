#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <lrun/batch.h>
#include <lrun/device_transfer.h>
#include <lrun/export.h>

#include <cstddef>
#include <cstdint>
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

namespace detail {
class ReplicaGroup;
}

/// Makes another module of the same kind. Its values do not matter: parameters and buffers are set afterwards.
using ModuleMaker = std::function<std::shared_ptr<torch::nn::Module>()>;

namespace detail {

/// True for a class that inherits torch::nn::Module's own clone(), which only throws.
template <class Module>
inline constexpr bool kLacksClone =
    std::is_same_v<decltype(&Module::clone),
                   std::shared_ptr<torch::nn::Module> (torch::nn::Module::*)(const std::optional<c10::Device>&) const>;

/// Uses clone(), else the default constructor; empty if there is neither.
template <class Module>
ModuleMaker default_maker(const std::shared_ptr<Module>& module) {
  if constexpr (!kLacksClone<Module>) {
    return [module] { return module->clone(); };
  } else if constexpr (std::is_default_constructible_v<Module>) {
    return [] { return std::make_shared<Module>(); };
  } else {
    return nullptr;
  }
}

}  // namespace detail

/// The replicas of a module on the devices of one process, for dp and ddp2. The first replica is the module itself. The
/// others live as long as this object and follow the module.
///
/// Parameters  on the module's own device replicas share the module's memory and have gradients of their own; on
///             another device they are copies, refreshed in place before each forward.
/// Buffers     copies, refreshed before each forward. As in torch's DataParallel, only values that a forward of the
///             module itself (part 0 of the batch) writes into buffers are kept.
/// Modes       train() and eval() of every submodule, requires_grad, and the options of torch's own modules (Dropout's
///             p, BatchNorm's momentum, …) follow the module, too. Other members stay as clone(), the constructor or
///             WrapOptions::make_replica set them.
/// Ties        tensors that are tied in the module are tied in a replica, even if clone() separates them: they share
///             memory, and their gradients are added up.
/// Random      the other replicas draw from generators of their own, seeded from the default one at each run(), so that
///             replicas differ and a run can be repeated. A replica with a GPU of its own uses the GPU's default
///             generator; replicas that share a GPU share that generator.
/// Streams     on GPUs each replica's thread uses the streams that are current in the caller's thread.
/// Gradients   of one batch are summed in the order of the replicas, so that runs are bitwise repeatable. Hooks on the
///             module's parameters see the gradients of part 0 and of step_end only.
/// NCCL        is used if each replica has a GPU of its own: for parameters, buffers and dense gradients, many tensors
///             per operation. NCCL chooses the order of sums by the devices and their connections. Tensors whose layout
///             differs between devices are copied.
/// Memory      with several CPU replicas the process keeps up to 1 GiB of freed memory for the next step, by thresholds
///             of glibc's malloc. These are not changed if MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ or
///             GLIBC_TUNABLES is set.
/// Threads     one kept thread per replica; the caller's thread runs the first. All calls come from one thread.
class LRUN_EXPORT Replicas {
 public:
  /// \param module   already on devices[0].
  /// \param devices  at least one; the same one may occur several times.
  /// \param make     called once for each further device. The default random generator is as before afterwards.
  /// \throws lrun::Unsupported      there is no `make`; the text says what the class needs.
  /// \throws std::invalid_argument  it made something else than the module is; names the first difference.
  Replicas(std::shared_ptr<torch::nn::Module> module, std::vector<at::Device> devices, const ModuleMaker& make);
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// From now on parameters, buffers and gradients travel through the group, where their memory lies alike on all
  /// devices. Null: by copies, as at first. \pre its devices are these.
  void exchange_through(std::unique_ptr<detail::ReplicaGroup> group);

  [[nodiscard]] std::size_t size() const;                    ///< The number of replicas, the module itself included.
  [[nodiscard]] at::Device device(std::size_t index) const;  ///< Of a replica.
  [[nodiscard]] bool spans_devices() const;                  ///< True if they are on more than one device.
  /// Copies parts of a batch to a replica; for the replica's thread.
  [[nodiscard]] DeviceTransfer& transfer(std::size_t index) const;
  /// A replica; the first is the module itself.
  [[nodiscard]] torch::nn::Module& module(std::size_t index) const;

  /// Called before each forward: brings the replicas to the module's present state and forgets outputs of an earlier
  /// batch.
  void follow_module();

  /// Calls work(0) … work(parts − 1), each in the thread of its replica and with the caller's grad mode. Returns when
  /// all have ended.
  /// \throws lrun::ReplicaFailed  for the lowest part that threw; the original exception is nested.
  void run(std::size_t parts, const std::function<void(std::size_t)>& work);

  /// Concatenates the outputs of all parts along dimension 0 on the first device; tensors without dimensions become a
  /// vector with one element per part. A backward() of the result stops at it; backward() of this object continues
  /// there.
  /// \throws std::invalid_argument  the outputs cannot be concatenated.
  at::Tensor gather(const std::vector<at::Tensor>& outputs);

  /// Called after backward() of the gathered outputs: runs the backward of all parts in their threads, then adds the
  /// replicas' gradients to the module's.
  /// \throws lrun::ReplicaFailed
  void backward();

 private:
  class State;
  std::unique_ptr<State> state_;
};

namespace detail {

/// The mean of the losses of the parts of a batch, one loss per part, weighted by the parts' samples.
/// \param samples  of the batch, which was split over `devices`.
/// \throws std::invalid_argument  there is not one element per part.
LRUN_EXPORT at::Tensor weighted_mean(const at::Tensor& losses, std::int64_t samples, std::size_t devices);

[[noreturn]] LRUN_EXPORT void refuse_outputs(std::size_t first, std::size_t part, std::size_t count);

/// Makes one container like those of the parts: `join` makes each of its tensors from the parts' tensors at that place.
template <TensorTree Outputs, class Join>
Outputs join_outputs(std::vector<std::optional<Outputs>>& parts, Join&& join) {
  std::vector<std::vector<at::Tensor*>> rows;
  for (auto& part : parts) rows.push_back(tensors_of(*part));
  for (std::size_t part = 1; part < rows.size(); ++part) {
    if (rows[part].size() != rows[0].size()) refuse_outputs(rows[0].size(), part, rows[part].size());
  }
  Outputs joined = *parts.front();
  const auto places = tensors_of(joined);
  for (std::size_t column = 0; column < places.size(); ++column) {
    std::vector<at::Tensor> tensors;
    for (const auto& row : rows) tensors.push_back(*row[column]);
    *places[column] = join(tensors);
  }
  return joined;
}

}  // namespace detail
}  // namespace lrun
