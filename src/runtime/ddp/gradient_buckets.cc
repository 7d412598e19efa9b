// In: gradients as autograd produces them, one pass after the other. Out: averaged gradients in flat buckets. Called by
// the hooks of GradientSync.
#include "runtime/ddp/gradient_buckets.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "runtime/collectives/common/bucket_tag.h"
#include "runtime/ddp/gradient_layout.h"

namespace lrun::detail {
namespace {

BucketLimits limits_of(const GradientSyncOptions& options) {
  return {.first_bucket_bytes = options.first_bucket_bytes, .bucket_bytes = options.bucket_bytes};
}

/// Rank 0's on every rank. Collective.
ArrivalOrder agree(const ArrivalOrder& order, Collectives& collectives) {
  const std::vector<std::int64_t> numbers(order.begin(), order.end());
  const at::Tensor agreed = at::tensor(numbers, at::kLong);
  collectives.broadcast(agreed, 0);
  const auto* first = agreed.const_data_ptr<std::int64_t>();
  return {first, first + agreed.numel()};
}

}  // namespace

GradientBuckets::GradientBuckets(std::vector<NamedTensor> parameters, Collectives& collectives,
                                 const GradientSyncOptions& options)
    : collectives_(collectives), options_(options) {
  if (options.bucket_bytes <= 0 || options.first_bucket_bytes <= 0) {
    throw std::invalid_argument("a bucket holds at least one byte");
  }
  if (collectives.world_size() == 1) return;  // nothing to average with
  auto plan = plan_buckets(bucket_items(parameters), reverse_order(parameters.size()), limits_of(options));
  for (auto& parameter : parameters) slots_.push_back({std::move(parameter), {}, false});
  make_buckets(std::move(plan));
}

/// All of it or nothing: hooks may still come when the group is lost.
void GradientBuckets::make_buckets(std::vector<PlannedBucket> plan) {
  std::vector<Bucket> buckets;
  std::vector<Place> places(slots_.size());
  for (const auto& planned : plan) {
    Bucket bucket = make_bucket(planned);
    for (const auto& [item, offset] : planned.slots) {
      places[item] = {gradient_view(bucket.flat, offset, slots_[item].parameter.tensor), buckets.size(),
                      bucket.slots.size()};
      bucket.slots.push_back(item);
    }
    buckets.push_back(std::move(bucket));
  }
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    at::Tensor& gradient = slots_[index].parameter.tensor.mutable_grad();
    Place& place = slots_[index].place;
    if (gradient.defined() && gradient.is_same(place.view)) {
      places[index].view.copy_(gradient);
      gradient = places[index].view;
    }
    place = std::move(places[index]);
  }
  buckets_ = std::move(buckets);
  plan_ = std::move(plan);
}

GradientBuckets::Bucket GradientBuckets::make_bucket(const PlannedBucket& planned) {
  Bucket bucket;
  const auto& [name, first] = slots_[planned.slots.front().item].parameter;
  const at::ScalarType wire = wire_type(options_.wire, first.scalar_type());
  bucket.flat = collectives_.allocate_bucket(planned.elements, wire);
  refuse_other_device(name, first, bucket.flat);
  if (wire != first.scalar_type()) {
    bucket.wire = std::exchange(bucket.flat, at::zeros({planned.elements}, first.options().requires_grad(false)));
  }
  bucket.flags = bucket.flat.narrow(0, planned.flags_offset, static_cast<std::int64_t>(planned.slots.size()));
  bucket.pending = planned.slots.size();
  bucket.used.assign(planned.slots.size(), false);
  return bucket;
}

void GradientBuckets::begin_pass() {
  for (auto& slot : slots_) slot.arrived = false;
  for (auto& bucket : buckets_) {
    bucket.pending = bucket.slots.size();
    bucket.used.assign(bucket.slots.size(), false);
  }
  next_bucket_ = 0;
  arrivals_.clear();
}

/// After zero_grad() the gradient is a tensor that autograd has just written; one copy into the bucket is cheaper than
/// zeroing the bucket before backward and adding to it.
void GradientBuckets::move_in(std::size_t index) {
  Slot& slot = slots_[index];
  at::Tensor& gradient = slot.parameter.tensor.mutable_grad();
  if (!gradient.defined() || gradient.is_same(slot.place.view)) return;
  refuse_foreign_gradient(index);
  slot.place.view.copy_(gradient.layout() == at::kStrided ? gradient : gradient.to_dense());
  gradient = slot.place.view;
}

/// If two gradients had the same place, autograd would add to both.
void GradientBuckets::refuse_foreign_gradient(std::size_t index) const {
  const at::Tensor& gradient = slots_[index].parameter.tensor.grad();
  const at::Tensor& own = slots_[index].place.view;
  if (!gradient.defined() || gradient.is_same(own) || !gradient.has_storage()) return;
  const bool in_bucket = std::ranges::any_of(buckets_, [&](const Bucket& bucket) {
    return gradient.storage().unsafeGetStorageImpl() == bucket.flat.storage().unsafeGetStorageImpl();
  });
  if (!in_bucket) return;
  if (gradient.storage_offset() == own.storage_offset() && gradient.sizes() == own.sizes() &&
      gradient.strides() == own.strides() && gradient.storage().is_alias_of(own.storage())) {
    return;
  }
  throw std::logic_error("the gradient that was assigned to parameter '" + slots_[index].parameter.name +
                         "' is that of another parameter, or a part of a bucket: assign a clone()");
}

void GradientBuckets::refuse_other_form(std::size_t index) const {
  detail::refuse_other_form(slots_[index].parameter, slots_[index].place.view);
}

void GradientBuckets::arrive(std::size_t index) {
  if (!order_is_settled_) arrivals_.push_back(index);
  note(slots_[index], true);
}

void GradientBuckets::complete(std::size_t index) {
  move_in(index);
  const Slot& slot = slots_[index];
  const bool used = slot.parameter.tensor.grad().defined();
  if (!used) slot.place.view.zero_();
  note(slots_[index], used);
}

void GradientBuckets::note(Slot& slot, bool used) {
  Bucket& bucket = buckets_[slot.place.bucket];
  slot.arrived = true;
  bucket.used[slot.place.flag] = used;
  --bucket.pending;
}

bool GradientBuckets::used(std::size_t index) const {
  const Place& place = slots_[index].place;
  return buckets_[place.bucket].used[place.flag];
}

void GradientBuckets::post_complete(std::uint64_t model, std::uint64_t pass,
                                    const std::function<void(const at::Tensor&)>& look) {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    const std::size_t index = next_bucket_++;
    Bucket& bucket = buckets_[index];
    look(bucket.flat.narrow(0, 0, bucket.flat.numel() - bucket.flags.numel()));
    post(index, BucketTag{model, pass, index}.encode());
  }
}

void GradientBuckets::post(std::size_t index, std::uint64_t tag) {
  Bucket& bucket = buckets_[index];
  if (std::ranges::all_of(bucket.used, std::identity())) {
    bucket.flags.fill_(1);
  } else {
    const std::vector<double> flags(bucket.used.begin(), bucket.used.end());
    bucket.flags.copy_(at::tensor(flags));
  }
  if (bucket.wire.defined()) bucket.wire.copy_(bucket.flat);
  const at::Tensor& sent = bucket.wire.defined() ? bucket.wire : bucket.flat;
  if (!comm_hook_) return bucket.works.push_back(collectives_.all_reduce(sent, ReduceOp::kAverage, tag));
  const std::int64_t gradients = sent.numel() - bucket.flags.numel();
  const at::Tensor flags = sent.narrow(0, gradients, bucket.flags.numel());
  bucket.works.push_back(collectives_.all_reduce(flags, ReduceOp::kAverage, tag));
  if (auto work = comm_hook_(collectives_, {index, sent.narrow(0, 0, gradients)})) {
    bucket.works.push_back(std::move(work));
  }
}

std::exception_ptr GradientBuckets::wait() noexcept {
  std::exception_ptr first;
  for (auto& bucket : buckets_) {
    for (const auto& work : bucket.works) {
      try {
        work->wait();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    bucket.works.clear();
  }
  return first;
}

void GradientBuckets::receive(int active_ranks) {
  for (auto& bucket : buckets_) {
    if (bucket.wire.defined()) bucket.flat.copy_(bucket.wire);
    if (active_ranks != collectives_.world_size()) {
      bucket.flat.mul_(static_cast<double>(collectives_.world_size()) / active_ranks);
    }
    if (std::ranges::all_of(bucket.used, std::identity())) continue;
    const std::vector<double> flags = numbers_of(bucket.flags);
    for (const auto index : bucket.slots) {
      Slot& slot = slots_[index];
      if (!bucket.used[slot.place.flag] && flags[slot.place.flag] > 0) {
        slot.parameter.tensor.mutable_grad() = slot.place.view;
      }
    }
  }
}

std::vector<double> GradientBuckets::shares() const {
  std::vector<double> shares(slots_.size());
  for (const auto& bucket : buckets_) {
    const std::vector<double> flags = numbers_of(bucket.flags);
    for (std::size_t flag = 0; flag < flags.size(); ++flag) shares[bucket.slots[flag]] = flags[flag];
  }
  return shares;
}

void GradientBuckets::settle_order() {
  if (std::exchange(order_is_settled_, true) || buckets_.size() < 2) return;  // one bucket is in order
  const ArrivalOrder order = agree(with_the_others_last(std::move(arrivals_), slots_.size()), collectives_);
  if (follows(plan_, order)) return;
  std::vector<NamedTensor> parameters;
  for (const auto& slot : slots_) parameters.push_back(slot.parameter);
  make_buckets(plan_buckets(bucket_items(parameters), order, limits_of(options_)));
}

std::vector<at::Tensor> GradientBuckets::flat() const {
  std::vector<at::Tensor> result;
  for (const auto& bucket : buckets_) result.push_back(bucket.flat);
  return result;
}

}  // namespace lrun::detail
