// In: the hooks of autograd during a backward(). Out: averaged gradients when it ends, or the group's failure. Called
// by GradientSync; the buckets themselves are GradientBuckets.
#include "runtime/ddp/gradient_sync_state.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "runtime/ddp/distinct_tensors.h"
#include "runtime/ddp/gradient_layout.h"

namespace lrun::detail {
namespace {

using torch::autograd::variable_list;

/// A parameter that was frozen or unfrozen later has no bucket, or one that never fills: ranks would drift apart.
void refuse_change(const std::string& name, const at::Tensor& tensor, bool trained) {
  if (tensor.requires_grad() == trained) return;
  throw std::logic_error("requires_grad of parameter '" + name +
                         "' changed after the module was wrapped: destroy the wrapped model and wrap again");
}

std::vector<NamedTensor> frozen_ones(std::vector<NamedTensor> parameters) {
  auto frozen = distinct(std::move(parameters));
  std::erase_if(frozen, [](const NamedTensor& parameter) { return parameter.tensor.requires_grad(); });
  return frozen;
}

/// Also in a world of one, so that a program fails where it is written and not on the cluster.
std::vector<NamedTensor> claimed(std::vector<NamedTensor> parameters, ParameterClaim& claim) {
  auto trained = trained_parameters(std::move(parameters));
  claim.take(trained);
  return trained;
}

/// Those that were made within inference mode could not take a gradient.
GradientBuckets outside_inference(std::vector<NamedTensor> trained, Collectives& collectives,
                                  const GradientSyncOptions& options) {
  const c10::InferenceMode normal(false);
  const at::NoGradGuard no_grad;
  return {std::move(trained), collectives, options};
}

}  // namespace

GradientSyncState::GradientSyncState(std::vector<NamedTensor> parameters, Collectives& collectives,
                                     GradientSyncOptions options)
    : collectives_(collectives),
      options_(options),
      frozen_(collectives.world_size() > 1 ? frozen_ones(parameters) : std::vector<NamedTensor>()),
      buckets_(outside_inference(claimed(std::move(parameters), claim_), collectives, options)),
      hooks_(buckets_.size()),
      active_ranks_(collectives.world_size()) {
  if (collectives.world_size() > 1) model_ = collectives_.next_number();
}

void GradientSyncState::attach_hooks() {
  for (std::size_t index = 0; index < hooks_.size(); ++index) attach_hook(index);
}

/// Done again if the tensor was moved to another device or dtype meanwhile: its accumulator is a new one then.
void GradientSyncState::attach_hook(std::size_t index) {
  Hook& hook = hooks_[index];
  auto accumulator = torch::autograd::impl::grad_accumulator(buckets_.parameter(index).tensor);
  if (accumulator == hook.accumulator) return;
  if (hook.accumulator) hook.accumulator->del_post_hook(hook.key);
  hook.accumulator = std::move(accumulator);
  hook.key = hook.accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [weak = weak_from_this(), index](const variable_list& outputs, const variable_list& gradients) {
        if (const auto self = weak.lock()) self->on_gradient(index, gradients.at(0).defined());
        return outputs;
      }));
}

void GradientSyncState::detach_hooks() noexcept {
  const std::lock_guard lock(mutex_);
  abort_pass();
  buckets_.wait();
  for (auto& hook : hooks_) {
    if (hook.accumulator) hook.accumulator->del_post_hook(hook.key);
  }
  claim_.release();
}

/// The exception that ended backward() must come out at once, not when the slowest rank has caught up.
void GradientSyncState::abort_pass() noexcept {
  if (!in_pass_) return;
  try {
    collectives_.abort("rank " + std::to_string(collectives_.rank()) + ": backward() ended in an exception");
  } catch (const std::exception&) {
    // Then the others are waited for, up to the deadline.
  }
}

void GradientSyncState::prepare() {
  const std::lock_guard lock(mutex_);
  if (in_pass_) abandon_pass();
  for (const auto& [name, tensor] : frozen_) refuse_change(name, tensor, false);
  for (std::size_t index = 0; index < hooks_.size(); ++index) {
    const auto& [name, tensor] = buckets_.parameter(index);
    refuse_change(name, tensor, true);
    buckets_.refuse_other_form(index);
    buckets_.refuse_foreign_gradient(index);
    attach_hook(index);
  }
}

void GradientSyncState::watch(const at::Tensor& output) {
  const bool is_watched = !hooks_.empty() || (guards_ && guards_->looks_for_unused());
  if (!is_watched || !output.defined() || output.grad_fn() == nullptr) return;
  output.register_hook([weak = weak_from_this()](const at::Tensor&) {
    if (const auto self = weak.lock()) self->on_output();
  });
}

/// The pass lasts until all of it has ended: hooks only move gradients into their buckets.
void GradientSyncState::average_after(const std::function<void()>& backward) {
  if ((hooks_.empty() && !guards_) || !syncs()) return backward();
  const auto alive = std::make_shared<const char>();  // when `backward` throws, prepare() finds the pass abandoned
  {
    const std::lock_guard lock(mutex_);
    if (in_pass_) abandon_pass();
    start_pass(alive);
  }
  {
    const NoSyncGuard suspended(shared_from_this());
    backward();
  }
  finish_pass();
}

void GradientSyncState::attempt(const std::function<void()>& step) {
  const std::uint64_t before = pass_;
  try {
    step();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (pass_ == before && syncs()) pass_ += 2;  // as start_pass() and abandon_pass() count
    throw;
  }
}

void GradientSyncState::on_gradient(std::size_t index, bool defined) {
  const std::lock_guard lock(mutex_);
  at::NoGradGuard no_grad;
  if (in_pass_ && pass_alive_.expired()) abandon_pass();  // before anything is written into its buckets
  buckets_.move_in(index);
  if (!syncs() || !defined) return;
  begin_pass();
  if (buckets_.arrived(index)) {
    throw std::logic_error("parameter '" + buckets_.parameter(index).name +
                           (hooks_[index].expected ? "' got its gradient twice in one backward()"
                                                   : "' got no gradient in the first backward() and gets one now: its "
                                                     "graph is not static"));
  }
  buckets_.arrive(index);
  within_step([this] { post_complete_buckets(); });
}

void GradientSyncState::on_output() {
  // torch::autograd::grad() asks for some gradients only, and leaves the parameters' alone.
  const auto* wanted = torch::autograd::get_current_graph_task_exec_info();
  if (wanted != nullptr && !wanted->empty()) return;
  const std::lock_guard lock(mutex_);
  if (syncs()) begin_pass();
}

void GradientSyncState::begin_pass() {
  if (in_pass_ && pass_alive_.expired()) abandon_pass();
  if (in_pass_) return;
  // The engine drops the callback with the backward() that it belongs to, however that ends. A backward() within
  // another one, as checkpointing has them, is part of the outer one's pass; so the engine's task is no measure.
  const auto alive = std::make_shared<const char>();
  start_pass(alive);
  torch::autograd::Engine::get_default_engine().queue_callback([weak = weak_from_this(), alive] {
    if (const auto self = weak.lock()) self->finish_pass();
  });
  for (std::size_t index = 0; index < hooks_.size(); ++index) {
    if (!hooks_[index].expected) buckets_.complete(index);
  }
}

void GradientSyncState::start_pass(const std::shared_ptr<const char>& alive) {
  buckets_.begin_pass();
  in_pass_ = true;
  ++pass_;
  pass_alive_ = alive;
}

void GradientSyncState::finish_pass() {
  const std::lock_guard lock(mutex_);
  at::NoGradGuard no_grad;
  for (std::size_t index = 0; index < hooks_.size(); ++index) {
    if (!buckets_.arrived(index)) buckets_.complete(index);
  }
  std::exception_ptr failure;
  try {
    post_complete_buckets();
  } catch (...) {
    failure = std::current_exception();
  }
  const auto wait_failure = buckets_.wait();
  if (!failure) failure = wait_failure;
  if (!failure) {
    buckets_.receive(active_ranks_);
    learn_graph();
  }
  in_pass_ = false;
  if (failure) std::rethrow_exception(explain(failure));
  require_all_used();
  within_step([this] {
    buckets_.settle_order();
    if (guards_) guards_->end_step();
  });
}

void GradientSyncState::post_complete_buckets() {
  buckets_.post_complete(model_, pass_, [this](const at::Tensor& gradients) {
    if (guards_) guards_->look_at_gradients(gradients);
  });
}

/// A rank without a batch learns nothing here: it used no parameter.
void GradientSyncState::learn_graph() {
  if (!options_.static_graph || graph_is_known_) return;
  for (std::size_t index = 0; index < hooks_.size(); ++index) hooks_[index].expected = buckets_.used(index);
  graph_is_known_ = std::ranges::any_of(hooks_, &Hook::expected);
  if (graph_is_known_) return;
  for (auto& hook : hooks_) hook.expected = true;
}

/// Uses the averaged flags, so that all ranks decide alike.
void GradientSyncState::require_all_used() const {
  if (options_.find_unused) return;
  const double all = 1 - 0.5 / active_ranks_;
  const std::vector<double> shares = buckets_.shares();
  for (std::size_t index = 0; index < shares.size(); ++index) {
    if (shares[index] > all) continue;
    throw std::logic_error("parameter '" + buckets_.parameter(index).name +
                           "' got no gradient on some rank in this backward(), and find_unused is off");
  }
}

void GradientSyncState::set_active_ranks(int count) {
  if (count < 1 || count > collectives_.world_size()) {
    throw std::invalid_argument("gradients of " + std::to_string(count) + " of " +
                                std::to_string(collectives_.world_size()) + " ranks cannot be averaged");
  }
  const std::lock_guard lock(mutex_);
  active_ranks_ = count;
}

void GradientSyncState::guard(std::vector<NamedTensor> parameters, GuardOptions options) {
  const std::lock_guard lock(mutex_);
  guards_.emplace(distinct(std::move(parameters)), collectives_, std::move(options));
}

void GradientSyncState::look_at_batch(const std::vector<at::Tensor>& tensors) {
  if (guards_) guards_->look_at_batch(tensors);
}

void GradientSyncState::within_step(const std::function<void()>& operation) const {
  try {
    operation();
  } catch (...) {
    std::rethrow_exception(explain(std::current_exception()));
  }
}

std::exception_ptr GradientSyncState::explain(const std::exception_ptr& failure) const {
  return guards_ ? in_step(failure, guards_->steps() + 1) : failure;
}

/// This rank's backward() ended in an exception. A rank on which it did not counts one pass less from now on, so that
/// its buckets no longer match this rank's: it has taken a step that this rank has not.
void GradientSyncState::abandon_pass() noexcept {
  buckets_.wait();  // a failure there is the group's, and comes out of the next operation
  in_pass_ = false;
  ++pass_;
}

}  // namespace lrun::detail
