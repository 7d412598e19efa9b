#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>
#include <lrun/gradient_sync.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ddp/gradient_buckets.h"
#include "runtime/ddp/parameter_claim.h"
#include "runtime/ddp/training_checks.h"

namespace lrun::detail {

/// The state that GradientSync's hooks share.
///
/// A pass of the buckets begins with the first hook of a backward() and ends with the callback that the engine runs at
/// its end.
class GradientSyncState : public std::enable_shared_from_this<GradientSyncState> {
 public:
  GradientSyncState(std::vector<NamedTensor> parameters, Collectives& collectives, GradientSyncOptions options);

  void attach_hooks();  ///< Not in the constructor: hooks keep a weak_ptr to this.
  void detach_hooks() noexcept;

  void prepare();
  void watch(const at::Tensor& output);
  void average_after(const std::function<void()>& backward);
  void attempt(const std::function<void()>& step);
  void register_comm_hook(CommHook hook) { buckets_.set_comm_hook(std::move(hook)); }
  void suspend() { ++suspended_; }
  void resume() { --suspended_; }
  [[nodiscard]] bool syncs() const { return suspended_ == 0; }
  void set_active_ranks(int count);
  void guard(std::vector<NamedTensor> parameters, GuardOptions options);
  [[nodiscard]] bool compares_batches() const { return guards_ && syncs() && guards_->compares_batches(); }
  void look_at_batch(const std::vector<at::Tensor>& tensors);
  void within_step(const std::function<void()>& operation) const;
  [[nodiscard]] std::vector<at::Tensor> buckets() const { return buckets_.flat(); }

 private:
  // LibTorch 2.13 changes the pointer's type: never spell it.
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

  /// On a parameter.
  struct Hook {
    Accumulator accumulator;
    std::uintptr_t key = 0;
    bool expected = true;  // static_graph: the parameter got a gradient in the first pass
  };

  void attach_hook(std::size_t index);
  void on_gradient(std::size_t index, bool defined);
  void on_output();
  void begin_pass();
  void start_pass(const std::shared_ptr<const char>& alive);
  void finish_pass();
  void post_complete_buckets();
  void learn_graph();
  void require_all_used() const;
  [[nodiscard]] std::exception_ptr explain(const std::exception_ptr& failure) const;
  void abandon_pass() noexcept;
  void abort_pass() noexcept;

  std::mutex mutex_;  // hooks of parameters on different devices run in different threads
  Collectives& collectives_;
  const GradientSyncOptions options_;
  ParameterClaim claim_;             // given back with the hooks: a NoSyncGuard may keep this alive
  std::vector<NamedTensor> frozen_;  // only to notice that they no longer are
  GradientBuckets buckets_;
  std::vector<Hook> hooks_;  // of the buckets' parameters
  std::optional<TrainingChecks> guards_;
  bool in_pass_ = false;
  std::weak_ptr<const char> pass_alive_;  // expires with the backward() of the pass; held by its callback alone
  std::uint64_t model_ = 0;               // for BucketTag, as is pass_
  std::uint64_t pass_ = 0;
  int suspended_ = 0;
  int active_ranks_;
  bool graph_is_known_ = false;
};

}  // namespace lrun::detail
