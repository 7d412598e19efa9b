#pragma once

#include <lrun/model.h>
#include <lrun/replicas.h>
#include <lrun/strategy.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ddp/unsplit_backward.h"
#include "runtime/dp/replica_group.h"

namespace lrun::detail {

/// dp and ddp2: the devices of this process share each batch; gradients are summed over them (the loss is one of the
/// whole batch), then averaged over the ranks, of which dp has one and ddp2 one a node.
class DataParallel final : public Strategy {
 public:
  /// \param devices  the first is the context's.
  /// \param group    connects them; null: parameters and gradients go by copies.
  DataParallel(const StrategyContext& context, std::vector<at::Device> devices, std::unique_ptr<ReplicaGroup> group);

  at::Tensor backward(const at::Tensor& loss) override;
  /// \throws std::logic_error  a step calls it.
  void place_module() override;
  [[nodiscard]] bool compares_batches() const override { return replicated_.compares_batches(); }
  void look_at_batch(const std::vector<at::Tensor>& tensors) override { replicated_.look_at_batch(tensors); }
  void broadcast_buffers() override { replicated_.broadcast_buffers(); }
  [[nodiscard]] NoSyncGuard no_sync() override { return replicated_.no_sync(); }
  [[nodiscard]] GradientSync* gradient_sync() override { return replicated_.gradient_sync(); }
  [[nodiscard]] Replicas* replicas() override { return &replicas_; }

 private:
  void prepare_forward() override;

  Replicas replicas_;
  // Until the first step: the program's own calls outside of steps are allowed. Its hooks come before those of
  // gradient_sync().
  std::optional<UnsplitBackward> unsplit_;
  ReplicatedModule replicated_;
};

/// A warning: replicas from a default constructor may differ from the module in members that lrun does not see.
std::string describe_constructed_replicas(const torch::nn::Module& module);

}  // namespace lrun::detail
