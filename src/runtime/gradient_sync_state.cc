#include "runtime/gradient_sync_state.h"

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

#include "runtime/collectives/bucket_tag.h"
#include "runtime/gradient_layout.h"

namespace lrun {
namespace {

using torch::autograd::variable_list;

/// A parameter that was frozen or thawed afterwards has no bucket, or one that never fills: ranks would drift apart.
void refuse_change(const std::string& name, const at::Tensor& tensor, bool trained) {
  if (tensor.requires_grad() == trained) return;
  throw std::logic_error("requires_grad of parameter '" + name +
                         "' changed after the module was wrapped: destroy the wrapped model and wrap again");
}

}  // namespace

GradientSyncState::GradientSyncState(std::vector<NamedTensor> parameters, Collectives& collectives,
                                     GradientSyncOptions options)
    : collectives_(collectives), options_(options), active_ranks_(collectives.world_size()) {
  const c10::InferenceMode normal(false);  // buckets that were made within it could not take a gradient
  if (options.bucket_bytes <= 0 || options.first_bucket_bytes <= 0) {
    throw std::invalid_argument("a bucket holds at least one byte");
  }
  if (collectives.world_size() > 1) {
    std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(frozen_), [](const NamedTensor& parameter) {
      return parameter.tensor.defined() && !parameter.tensor.requires_grad();
    });
  }
  auto kept = trained_parameters(std::move(parameters));
  claim_.take(kept);  // also alone, so that a program fails where it is written and not on the cluster
  if (collectives.world_size() == 1) return;  // nothing to average with
  at::NoGradGuard no_grad;
  const auto planned = plan_buckets(bucket_items(kept), options.first_bucket_bytes, options.bucket_bytes);
  for (auto& parameter : kept) {
    Slot slot;
    slot.name = std::move(parameter.name);
    slot.parameter = std::move(parameter.tensor);
    slots_.push_back(std::move(slot));
  }
  for (const auto& bucket : planned) add_bucket(bucket);
  model_ = collectives_.next_number();
}

void GradientSyncState::add_bucket(const PlannedBucket& planned) {
  Bucket bucket;
  const at::Tensor& first = slots_[planned.slots.front().item].parameter;
  const at::ScalarType wire = wire_type(options_.wire, first.scalar_type());
  bucket.flat = collectives_.allocate_bucket(planned.elements, wire);
  refuse_other_device(slots_[planned.slots.front().item].name, first, bucket.flat);
  if (wire != first.scalar_type()) {
    bucket.wire = std::exchange(bucket.flat, at::zeros({planned.elements}, first.options().requires_grad(false)));
  }
  const auto slot_count = static_cast<std::int64_t>(planned.slots.size());
  bucket.flags = bucket.flat.narrow(0, planned.flags_offset, slot_count);
  bucket.pending = planned.slots.size();
  bucket.used.assign(planned.slots.size(), false);
  for (const auto& [item, offset] : planned.slots) {
    Slot& slot = slots_[item];
    slot.view = gradient_view(bucket.flat, offset, slot.parameter);
    slot.bucket = buckets_.size();
    slot.flag = bucket.slots.size();
    bucket.slots.push_back(item);
  }
  buckets_.push_back(std::move(bucket));
}

void GradientSyncState::attach_hooks() {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    slot.accumulator = torch::autograd::impl::grad_accumulator(slot.parameter);
    slot.hook = slot.accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [weak = weak_from_this(), index](const variable_list& outputs, const variable_list& gradients) {
          if (const auto self = weak.lock()) self->on_gradient(index, gradients.at(0).defined());
          return outputs;
        }));
  }
}

void GradientSyncState::detach_hooks() noexcept {
  const std::lock_guard lock(mutex_);
  abort_pass();
  wait_for_all();
  for (auto& slot : slots_) {
    if (slot.accumulator) slot.accumulator->del_post_hook(slot.hook);
  }
  claim_.release();
}

/// The exception that ended backward() is to come out at once, not when the slowest rank has caught up.
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
  for (const auto& slot : slots_) {
    refuse_change(slot.name, slot.parameter, true);
    if (torch::autograd::impl::grad_accumulator(slot.parameter) != slot.accumulator) {
      throw std::logic_error("parameter '" + slot.name +
                             "' was converted or moved after the module was wrapped: do that before");
    }
    refuse_foreign_gradient(slot);
  }
}

/// One that lies in a bucket at another place than its own would be changed by what autograd adds to either of them.
void GradientSyncState::refuse_foreign_gradient(const Slot& slot) const {
  const at::Tensor& gradient = slot.parameter.grad();
  if (!gradient.defined() || gradient.is_same(slot.view) || !gradient.has_storage()) return;
  const bool in_bucket = std::ranges::any_of(buckets_, [&](const Bucket& bucket) {
    return gradient.storage().unsafeGetStorageImpl() == bucket.flat.storage().unsafeGetStorageImpl();
  });
  if (!in_bucket) return;
  const at::Tensor& own = slot.view;
  if (gradient.storage_offset() == own.storage_offset() && gradient.sizes() == own.sizes() &&
      gradient.strides() == own.strides() && gradient.storage().is_alias_of(own.storage())) {
    return;
  }
  throw std::logic_error("the gradient that was assigned to parameter '" + slot.name +
                         "' is that of another parameter, or a part of a bucket: assign a clone()");
}

void GradientSyncState::watch(const at::Tensor& output) {
  const bool is_watched = !slots_.empty() || (guards_ && guards_->looks_for_unused());
  if (!is_watched || !output.defined() || output.grad_fn() == nullptr) return;
  output.register_hook([weak = weak_from_this()](const at::Tensor&) {
    if (const auto self = weak.lock()) self->on_output();
  });
}

/// The pass lasts until all of it has ended: hooks only move gradients into their buckets.
void GradientSyncState::average_after(const std::function<void()>& backward) {
  if ((slots_.empty() && !guards_) || !syncs()) return backward();
  const auto alive = std::make_shared<const char>();  // when `backward` throws, prepare() finds the pass abandoned
  {
    const std::lock_guard lock(mutex_);
    if (in_pass_) abandon_pass();
    in_pass_ = true;
    ++pass_;
    pass_alive_ = alive;
  }
  {
    const NoSyncGuard suspended(shared_from_this());
    backward();
  }
  finish_pass();
}

std::vector<at::Tensor> GradientSyncState::buckets() const {
  std::vector<at::Tensor> result;
  for (const auto& bucket : buckets_) result.push_back(bucket.flat);
  return result;
}

void GradientSyncState::on_gradient(std::size_t index, bool defined) {
  const std::lock_guard lock(mutex_);
  at::NoGradGuard no_grad;
  if (in_pass_ && pass_alive_.expired()) abandon_pass();  // before anything is written into its buckets
  Slot& slot = slots_[index];
  move_into_bucket(slot);
  if (!syncs() || !defined) return;
  begin_pass();
  if (slot.arrived) {
    throw std::logic_error("parameter '" + slot.name +
                           (slot.expected ? "' got its gradient twice in one backward()"
                                          : "' got no gradient in the first backward() and gets one now: its graph is "
                                            "not static"));
  }
  arrive(slot, true);
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
  in_pass_ = true;
  ++pass_;
  // The engine drops the callback with the backward() that it belongs to, however that ends. A backward() within
  // another one, as checkpointing has them, is part of the outer one's pass; so the engine's task is no measure.
  const auto alive = std::make_shared<const char>();
  pass_alive_ = alive;
  torch::autograd::Engine::get_default_engine().queue_callback([weak = weak_from_this(), alive] {
    if (const auto self = weak.lock()) self->finish_pass();
  });
  for (auto& slot : slots_) {
    if (!slot.expected) complete(slot);
  }
}

void GradientSyncState::finish_pass() {
  const std::lock_guard lock(mutex_);
  at::NoGradGuard no_grad;
  for (auto& slot : slots_) {
    if (!slot.arrived) complete(slot);
  }
  std::exception_ptr failure;
  try {
    post_complete_buckets();
  } catch (...) {
    failure = std::current_exception();
  }
  const auto wait_failure = wait_for_all();
  if (!failure) failure = wait_failure;
  if (!failure) {
    for (auto& bucket : buckets_) {
      receive(bucket);
      adopt_results(bucket);
    }
    learn_graph();
  }
  forget_pass();
  if (failure) std::rethrow_exception(explain(failure));
  require_all_used();
  if (guards_) within_step([this] { guards_->end_step(); });
}

/// Makes the bucket's part this parameter's gradient. After zero_grad() the gradient is a tensor that autograd has just
/// written; one copy into the bucket is cheaper than zeroing the bucket before backward and adding to it.
void GradientSyncState::move_into_bucket(Slot& slot) {
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (!gradient.defined() || gradient.is_same(slot.view)) return;
  refuse_foreign_gradient(slot);
  slot.view.copy_(gradient.layout() == at::kStrided ? gradient : gradient.to_dense());
  gradient = slot.view;
}

/// Nothing arrived in this pass. What was accumulated before (under no_sync()) still is to be averaged.
void GradientSyncState::complete(Slot& slot) {
  move_into_bucket(slot);
  const bool used = slot.parameter.grad().defined();
  if (!used) slot.view.zero_();
  arrive(slot, used);
}

void GradientSyncState::arrive(Slot& slot, bool used) {
  Bucket& bucket = buckets_[slot.bucket];
  slot.arrived = true;
  bucket.used[slot.flag] = used;
  --bucket.pending;
}

void GradientSyncState::post_complete_buckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) post(next_bucket_++);
}

void GradientSyncState::post(std::size_t index) {
  Bucket& bucket = buckets_[index];
  if (guards_) guards_->look_at_gradients(bucket.flat.narrow(0, 0, bucket.flat.numel() - bucket.flags.numel()));
  if (std::all_of(bucket.used.begin(), bucket.used.end(), [](bool used) { return used; })) {
    bucket.flags.fill_(1);
  } else {
    const std::vector<double> flags(bucket.used.begin(), bucket.used.end());
    bucket.flags.copy_(at::tensor(flags));
  }
  if (bucket.wire.defined()) bucket.wire.copy_(bucket.flat);
  bucket.work = collectives_.all_reduce(bucket.wire.defined() ? bucket.wire : bucket.flat, ReduceOp::kAverage,
                                        BucketTag{model_, pass_, index}.encode());
}

void GradientSyncState::receive(Bucket& bucket) {
  if (bucket.wire.defined()) bucket.flat.copy_(bucket.wire);
  if (active_ranks_ == collectives_.world_size()) return;
  bucket.flat.mul_(static_cast<double>(collectives_.world_size()) / active_ranks_);
}

/// A parameter without a gradient here gets the average if any rank had one.
void GradientSyncState::adopt_results(Bucket& bucket) {
  if (std::ranges::all_of(bucket.used, std::identity())) return;
  const std::vector<double> flags = numbers_of(bucket.flags);
  for (const auto index : bucket.slots) {
    Slot& slot = slots_[index];
    if (!bucket.used[slot.flag] && flags[slot.flag] > 0) slot.parameter.mutable_grad() = slot.view;
  }
}

/// A rank without a batch learns nothing: it used no parameter.
void GradientSyncState::learn_graph() {
  if (!options_.static_graph || graph_is_known_) return;
  for (auto& slot : slots_) slot.expected = buckets_[slot.bucket].used[slot.flag];
  graph_is_known_ = std::ranges::any_of(slots_, [](const Slot& slot) { return slot.expected; });
  if (graph_is_known_) return;
  for (auto& slot : slots_) slot.expected = true;
}

/// From the averaged flags, so that all ranks come to the same.
void GradientSyncState::require_all_used() const {
  if (options_.find_unused) return;
  const double all = 1 - 0.5 / active_ranks_;
  std::vector<std::vector<double>> flags;
  for (const auto& bucket : buckets_) flags.push_back(numbers_of(bucket.flags));
  for (const auto& slot : slots_) {
    if (flags[slot.bucket][slot.flag] > all) continue;
    throw std::logic_error("parameter '" + slot.name +
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
  guards_.emplace(std::move(parameters), collectives_, std::move(options));
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

std::exception_ptr GradientSyncState::wait_for_all() noexcept {
  std::exception_ptr first;
  for (auto& bucket : buckets_) {
    if (!bucket.work) continue;
    try {
      bucket.work->wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
    bucket.work.reset();
  }
  return first;
}

/// Its backward() ended in an exception. A rank where it did not counts one pass less from now on, so that its buckets
/// do not match this rank's any more: it has taken a step that this rank has not.
void GradientSyncState::abandon_pass() noexcept {
  wait_for_all();  // a failure there is the group's, and comes out of the next operation
  forget_pass();
  ++pass_;
}

void GradientSyncState::forget_pass() {
  for (auto& slot : slots_) slot.arrived = false;
  for (auto& bucket : buckets_) {
    bucket.pending = bucket.slots.size();
    std::fill(bucket.used.begin(), bucket.used.end(), false);
  }
  next_bucket_ = 0;
  in_pass_ = false;
}

}  // namespace lrun
