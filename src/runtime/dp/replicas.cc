// In: a module, its devices and the parts of a batch. Out: the parts' outputs and losses, and gradients in the module.
// Implements <lrun/replicas.h>; called by DataParallel.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <lrun/error.h>
#include <lrun/replicas.h>
#include <torch/csrc/autograd/autograd.h>

#include <exception>
#include <numeric>
#include <string>

#include "runtime/ddp/freed_memory.h"
#include "runtime/dp/module_copies.h"
#include "runtime/dp/replica_group.h"
#include "runtime/dp/replica_threads.h"
#include "runtime/dp/thread_generator.h"

namespace lrun {
namespace {

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "what was thrown is no std::exception";
  }
}

/// Adds slice `index` of `count`; a small or non-contiguous tensor is added as a whole by one thread.
void add_slice(const detail::ModuleCopies::Sum& sum, std::size_t position, std::size_t index, std::size_t count) {
  constexpr std::int64_t kSmall = 4096;
  const auto elements = sum.into.numel();
  const bool flat = sum.into.is_contiguous() && std::ranges::all_of(sum.gradients, [](const at::Tensor& gradient) {
                      return gradient.is_contiguous();
                    });
  if (!flat || elements < kSmall) {
    if (position % count != index) return;
    for (const auto& gradient : sum.gradients) sum.into.add_(gradient);
    return;
  }
  const auto border = [&](std::size_t at) {
    return elements * static_cast<std::int64_t>(at) / static_cast<std::int64_t>(count);
  };
  const auto slice = [&](const at::Tensor& tensor) {
    return tensor.view({-1}).narrow(0, border(index), border(index + 1) - border(index));
  };
  auto into = slice(sum.into);
  for (const auto& gradient : sum.gradients) into.add_(slice(gradient));
}

/// Those in which the caller's work on the devices is queued.
std::vector<c10::Stream> current_streams(const std::vector<at::Device>& devices) {
  std::vector<c10::Stream> streams;
  if (!at::isAccelerator(devices.front().type())) return streams;
  const c10::impl::VirtualGuardImpl guard(devices.front().type());
  for (const at::Device& device : devices) streams.push_back(guard.getStream(device));
  return streams;
}

void seed_device(at::Device device, std::uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

class Replicas::State {
 public:
  State(std::shared_ptr<torch::nn::Module> module, std::vector<at::Device> all_devices, const ModuleMaker& make)
      : devices(std::move(all_devices)),
        copies(std::move(module), devices, make),
        generators(devices.size() - 1),
        threads(devices.size()) {
    for (auto& generator : generators) generator = at::make_generator<at::CPUGeneratorImpl>();
    for (const at::Device& device : devices) transfers.emplace_back(device);
    if (std::ranges::count_if(devices, [](at::Device device) { return device.is_cpu(); }) > 1)
      detail::keep_freed_memory();
  }

  /// The continuation of one part's backward: its output, and the leaf that replaced it in the gathered one.
  struct Joint {
    at::Tensor output;
    at::Tensor leaf;
  };

  void run(std::size_t parts, const std::function<void(std::size_t)>& work);
  void raise(const std::vector<std::exception_ptr>& failures) const;

  const std::vector<at::Device> devices;
  std::vector<DeviceTransfer> transfers;
  std::unique_ptr<detail::ReplicaGroup> group;  // null: copies
  detail::ModuleCopies copies;
  std::vector<at::Generator> generators;  // of all replicas but the first
  std::vector<std::vector<Joint>> joints;
  detail::ReplicaThreads threads;  // last: they end first
};

/// On the device of the part, with its random numbers. Current streams are per thread: work that other threads put on
/// other streams would not be ordered with it.
void Replicas::State::run(std::size_t parts, const std::function<void(std::size_t)>& work) {
  const std::vector<c10::Stream> streams = current_streams(devices);
  raise(threads.run(parts, [&](std::size_t index) {
    const auto device = devices[index];
    const c10::MultiStreamGuard same_streams(streams);
    const c10::OptionalDeviceGuard guard(device.is_cpu() ? std::nullopt : std::optional(device));
    std::optional<detail::ThreadGenerator> generator;
    if (index > 0 && device.is_cpu()) generator.emplace(generators[index - 1]);
    work(index);
  }));
}

void Replicas::State::raise(const std::vector<std::exception_ptr>& failures) const {
  for (std::size_t index = 0; index < failures.size(); ++index) {
    if (!failures[index]) continue;
    const std::string text = "part " + std::to_string(index) + " of " + std::to_string(failures.size()) + " (device " +
                             devices[index].str() + "): " + text_of(failures[index]);
    try {
      std::rethrow_exception(failures[index]);
    } catch (...) {
      std::throw_with_nested(ReplicaFailed(text));
    }
  }
}

Replicas::Replicas(std::shared_ptr<torch::nn::Module> module, std::vector<at::Device> devices, const ModuleMaker& make)
    : state_(std::make_unique<State>(std::move(module), std::move(devices), make)) {}

Replicas::~Replicas() = default;

void Replicas::exchange_through(std::unique_ptr<detail::ReplicaGroup> group) { state_->group = std::move(group); }

std::size_t Replicas::size() const { return state_->devices.size(); }

at::Device Replicas::device(std::size_t index) const { return state_->devices.at(index); }

bool Replicas::spans_devices() const {
  return std::ranges::any_of(state_->devices, [&](at::Device device) { return device != state_->devices.front(); });
}

DeviceTransfer& Replicas::transfer(std::size_t index) const { return state_->transfers.at(index); }

torch::nn::Module& Replicas::module(std::size_t index) const { return state_->copies[index]; }

void Replicas::follow_module() {
  state_->joints.clear();
  state_->copies.follow(state_->group.get());
}

void Replicas::run(std::size_t parts, const std::function<void(std::size_t)>& work) {
  const std::uint64_t seed = detail::draw_from_default_generator();
  for (std::size_t index = 1; index < parts; ++index) {
    const at::Device device = state_->devices[index];
    state_->generators[index - 1].set_current_seed(detail::seed_of_stream(seed, index));
    if (!device.is_cpu() && device != state_->devices.front()) seed_device(device, detail::seed_of_stream(seed, index));
  }
  state_->joints.assign(parts, {});
  state_->run(parts, work);
}

at::Tensor Replicas::gather(const std::vector<at::Tensor>& outputs) {
  const auto defined = std::ranges::count_if(outputs, [](const at::Tensor& output) { return output.defined(); });
  if (defined == 0) return {};
  if (static_cast<std::size_t>(defined) != outputs.size()) {
    throw std::invalid_argument("step returned an undefined tensor for some parts of a batch, and not for others");
  }
  std::vector<at::Tensor> rows;
  for (std::size_t part = 0; part < outputs.size(); ++part) {
    at::Tensor row = outputs[part];
    if (at::GradMode::is_enabled() && row.requires_grad()) {
      row = row.detach().to(state_->devices[0]).set_requires_grad(true);
      state_->joints[part].push_back({outputs[part], row});
    }
    if (row.device() != state_->devices[0]) row = row.to(state_->devices[0]);
    rows.push_back(row.dim() == 0 && outputs.size() > 1 ? row.unsqueeze(0) : row);
  }
  // Never the leaf itself: step_end may change its outputs in place.
  return rows.size() == 1 ? rows.front().clone() : at::cat(rows);
}

void Replicas::backward() {
  auto joints = std::exchange(state_->joints, {});
  if (joints.empty()) return;
  state_->run(joints.size(), [&](std::size_t part) {
    torch::autograd::variable_list outputs;
    torch::autograd::variable_list gradients;
    for (const auto& [output, leaf] : joints[part]) {
      if (!leaf.grad().defined()) continue;  // step_end did not use it
      outputs.push_back(output);
      gradients.push_back(leaf.grad().to(output.device()));
    }
    joints[part].clear();  // outputs keeps what is needed, and its graph is freed in this thread
    if (!outputs.empty()) torch::autograd::backward(outputs, gradients);
  });
  const at::NoGradGuard no_grad;
  const auto sums = state_->copies.take_gradients(state_->group.get());
  const std::size_t threads = state_->threads.count();
  state_->raise(state_->threads.run(threads, [&](std::size_t index) {
    for (std::size_t position = 0; position < sums.size(); ++position)
      add_slice(sums[position], position, index, threads);
  }));
}

namespace detail {

at::Tensor weighted_mean(const at::Tensor& losses, std::int64_t samples, std::size_t devices) {
  const auto sizes = split_evenly(samples, devices);
  if (!losses.defined() || losses.numel() != static_cast<std::int64_t>(sizes.size())) {
    throw std::invalid_argument("a step without step_end returns the loss of its part: a tensor with one element");
  }
  if (sizes.size() == 1) return losses;
  // Divided before they are made the losses' dtype, which may be too narrow for a number of samples.
  const auto weights = at::tensor(sizes, at::kDouble).div(static_cast<double>(samples));
  return (losses.view({-1}) * weights.to(losses.options().requires_grad(false))).sum();
}

void refuse_outputs(std::size_t first, std::size_t part, std::size_t count) {
  throw std::invalid_argument("step returned " + std::to_string(first) + " tensors for part 0 of a batch, and " +
                              std::to_string(count) + " for part " + std::to_string(part));
}

}  // namespace detail
}  // namespace lrun
