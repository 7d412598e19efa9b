#include <lrun/gradient_sync.h>

#include <utility>

#include "runtime/ddp/gradient_sync_state.h"

namespace lrun {

NoSyncGuard::NoSyncGuard(std::shared_ptr<detail::GradientSyncState> state) : state_(std::move(state)) {
  state_->suspend();
}

NoSyncGuard::NoSyncGuard(NoSyncGuard&& other) noexcept = default;

NoSyncGuard::~NoSyncGuard() {
  if (state_) state_->resume();
}

GradientSync::GradientSync(std::vector<NamedTensor> parameters, Collectives& collectives, GradientSyncOptions options)
    : state_(std::make_shared<detail::GradientSyncState>(std::move(parameters), collectives, options)) {
  state_->attach_hooks();
}

GradientSync::~GradientSync() {
  if (state_) state_->detach_hooks();
}

GradientSync::GradientSync(GradientSync&&) noexcept = default;

GradientSync& GradientSync::operator=(GradientSync&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

void GradientSync::prepare() { state_->prepare(); }

void GradientSync::watch(const at::Tensor& output) { state_->watch(output); }

void GradientSync::average_after(const std::function<void()>& backward) { state_->average_after(backward); }

void GradientSync::attempt(const std::function<void()>& step) { state_->attempt(step); }

void GradientSync::register_comm_hook(CommHook hook) { state_->register_comm_hook(std::move(hook)); }

NoSyncGuard GradientSync::no_sync() { return NoSyncGuard(state_); }

bool GradientSync::syncs() const { return state_->syncs(); }

void GradientSync::set_active_ranks(int count) { state_->set_active_ranks(count); }

void GradientSync::guard(std::vector<NamedTensor> parameters, GuardOptions options) {
  state_->guard(std::move(parameters), std::move(options));
}

bool GradientSync::compares_batches() const { return state_->compares_batches(); }

void GradientSync::look_at_batch(const std::vector<at::Tensor>& tensors) { state_->look_at_batch(tensors); }

void GradientSync::within_step(const std::function<void()>& operation) const { state_->within_step(operation); }

std::vector<at::Tensor> GradientSync::buckets() const { return state_->buckets(); }

}  // namespace lrun
