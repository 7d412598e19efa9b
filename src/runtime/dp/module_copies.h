#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/replicas.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dp/module_options.h"
#include "runtime/dp/replica_group.h"

namespace lrun::detail {

/// Copies of a module that follow it. Implements the rules of Replicas for parameters, buffers, modes and gradients.
///
/// Threads  any, one at a time, and none while a copy runs.
class ModuleCopies {
 public:
  /// \param devices  of the module, then of each copy.
  ModuleCopies(std::shared_ptr<torch::nn::Module> module, const std::vector<at::Device>& devices,
               const ModuleMaker& make);

  /// 0: the module itself.
  [[nodiscard]] torch::nn::Module& operator[](std::size_t index) const { return *modules_[index]; }

  /// Makes all copies equal to the module's present state.
  /// \param group  may be null, as below; it takes the tensors that it can.
  void follow(ReplicaGroup* group);

  /// Gradients to be added to one of the module's, in this order: dense ones on the CPU, all of one shape.
  struct Sum {
    at::Tensor into;
    std::vector<at::Tensor> gradients;
  };
  /// Moves the copies' gradients into the module's. Sums that several threads can do in slices are returned instead,
  /// and are still to be done.
  std::vector<Sum> take_gradients(ReplicaGroup* group);

 private:
  struct Followed {
    at::Tensor own;
    std::vector<at::Tensor> copies;  // one a replica
    // Tensors that a replica has beside its copy for what is one tied tensor in the module: tied again by their memory.
    std::vector<std::pair<at::Tensor, at::Tensor>> ties;  // copy, other
  };
  struct Submodule {
    torch::nn::Module* own = nullptr;
    torch::nn::Module* copy = nullptr;
    OptionsCopier copy_options = nullptr;  // may be null
  };

  void pair_up(torch::nn::Module& copy, at::Device device);
  void pair_up_submodules(torch::nn::Module& copy);
  static void tie(const Followed& followed);
  static void gather_ties(const Followed& parameter);
  static bool joins(std::vector<ReplicaRow>& rows, const Followed& followed, const ReplicaGroup* group);
  static bool sums(std::vector<ReplicaRow>& rows, const Followed& parameter, const ReplicaGroup* group);
  static void follow_parameter(const Followed& parameter);
  static void follow_buffer(const Followed& buffer);

  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<Followed> parameters_;
  std::vector<Followed> buffers_;
  std::vector<Submodule> submodules_;  // of all copies, parents first
};

}  // namespace lrun::detail
