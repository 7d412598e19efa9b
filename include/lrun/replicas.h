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

/// Makes one more module of the same kind: its values do not matter, its parameters and buffers are set afterwards.
using ModuleMaker = std::function<std::shared_ptr<torch::nn::Module>()>;

namespace detail {

/// A class that inherits torch::nn::Module's own clone(), which only throws.
template <class Module>
inline constexpr bool kLacksClone =
    std::is_same_v<decltype(&Module::clone),
                   std::shared_ptr<torch::nn::Module> (torch::nn::Module::*)(const std::optional<c10::Device>&) const>;

/// clone(), else the default constructor; empty where there is neither.
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

/// The replicas of a module on the devices of one process, for dp and ddp2. The first is the module itself; the others
/// live as long as this does and follow it.
///
/// Parameters  on the module's own device they are the module's memory, with gradients of their own; on another device
///             a copy, refreshed in place before each forward.
/// Buffers     copies, refreshed before each forward: what a forward writes into them is kept of the module itself
///             (part 0 of the batch) alone, as in torch's DataParallel.
/// Modes       train(), eval() of every submodule, requires_grad, and the options of torch's own modules (Dropout's p,
///             BatchNorm's momentum, …) follow the module too. Other members are what clone(), the constructor or
///             WrapOptions::make_replica made them.
/// Ties        what is one tensor in the module is one in a replica, too, also where clone() makes two of it: they have
///             the same memory, and their gradients are added up.
/// Random      numbers of the other replicas come from generators of their own, seeded from the default one at each
///             run(), so that replicas differ and a run can be repeated. On a GPU of their own that is the GPU's
///             default generator; replicas that share a GPU share its.
/// Streams     on GPUs each replica's thread works on the streams that are current in the caller's.
/// Gradients   of one batch are summed in the order of the replicas, so that runs are bitwise repeatable. Hooks on the
///             module's parameters see the gradients of part 0 and of step_end only.
/// NCCL        where each replica has a GPU of its own, parameters, buffers and dense gradients travel through it, many
///             tensors an operation; NCCL chooses the order of sums, by the devices and their connections. What does
///             not lie alike on all devices goes by copies.
/// Memory      with several CPU replicas the process keeps what it frees, up to 1 GiB, for the next step (thresholds
///             of glibc's malloc, left alone where MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ or GLIBC_TUNABLES is
///             set).
/// Threads     one a replica, kept; the caller's runs the first. All calls come from one thread.
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

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] at::Device device(std::size_t index) const;
  [[nodiscard]] bool spans_devices() const;  ///< They are on more than one.
  /// What brings parts of a batch to a replica; for its thread.
  [[nodiscard]] DeviceTransfer& transfer(std::size_t index) const;
  [[nodiscard]] torch::nn::Module& module(std::size_t index) const;

  /// Before each forward: the replicas become what the module is now, and outputs of an earlier batch are forgotten.
  void follow_module();

  /// Calls work(0) … work(parts − 1), each in the thread of its replica, with the caller's grad mode; returns when all
  /// have ended.
  /// \throws lrun::ReplicaFailed  the lowest part that threw; what it threw is nested.
  void run(std::size_t parts, const std::function<void(std::size_t)>& work);

  /// The outputs of all parts along dimension 0, on the first device; tensors without dimensions become a vector with
  /// one element a part. A backward() of the result stops there: backward() of this object goes on from there.
  /// \throws std::invalid_argument  outputs that cannot be concatenated.
  at::Tensor gather(const std::vector<at::Tensor>& outputs);

  /// After the backward() of what was gathered: that of all parts, in their threads; then adds the replicas' gradients
  /// to the module's.
  /// \throws lrun::ReplicaFailed
  void backward();

 private:
  class State;
  std::unique_ptr<State> state_;
};

namespace detail {

/// Of losses, one a part of a batch of `samples` over `devices`: their mean, weighted by the parts' samples.
/// \throws std::invalid_argument  not one element a part.
LRUN_EXPORT at::Tensor weighted_mean(const at::Tensor& losses, std::int64_t samples, std::size_t devices);

[[noreturn]] LRUN_EXPORT void refuse_outputs(std::size_t first, std::size_t part, std::size_t count);

/// One container like those of the parts, with what `join` makes of each column of their tensors.
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
