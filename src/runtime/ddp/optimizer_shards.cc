// In: an optimizer of torch and its averaged gradients. Out: one update on every rank, with the state split over the
// ranks. Implements <lrun/optimizer_shards.h>.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/collectives.h>
#include <lrun/error.h>
#include <lrun/exchange.h>
#include <lrun/optimizer_shards.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/ddp/model_agreement.h"
#include "runtime/ddp/shard_exchange.h"
#include "runtime/ddp/shard_plan.h"

namespace lrun {
namespace {

/// Frozen parameters have no state and are not sent.
std::int64_t gradient_bytes_of(const at::Tensor& parameter) {
  return parameter.requires_grad() ? static_cast<std::int64_t>(parameter.nbytes()) : 0;
}

/// Where the optimizer's parameters are; a group may be empty.
at::Device device_of(const torch::optim::Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) {
    if (!group.params().empty()) return group.params().front().device();
  }
  return at::kCPU;
}

bool is_on_one_device(const torch::optim::Optimizer& optimizer) {
  const at::Device device = device_of(optimizer);
  return std::ranges::all_of(optimizer.param_groups(), [&](const torch::optim::OptimizerParamGroup& group) {
    return std::ranges::all_of(group.params(), [&](const at::Tensor& tensor) { return tensor.device() == device; });
  });
}

/// In memory that ranks share, or between GPUs, nothing is gained by sending and receiving at once; nor with
/// 'shm+gloo', whose all_gather copies every byte twice more.
bool sends_over_links(const Collectives& collectives) { return collectives.name() == "gloo"; }

void refuse_coupled(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const torch::optim::LBFGS*>(&optimizer) == nullptr) return;
  throw Unsupported(
      "the state of LBFGS belongs to all parameters at once and cannot be split over ranks: use strategy 'ddp', or "
      "another optimizer");
}

/// Removes the gradients of some parameters for as long as it lives, so that an optimizer skips them.
class HiddenGradients {
 public:
  HiddenGradients() = default;
  HiddenGradients(const HiddenGradients&) = delete;
  HiddenGradients& operator=(const HiddenGradients&) = delete;
  ~HiddenGradients() {
    for (auto& [parameter, gradient] : hidden_) parameter.mutable_grad() = std::move(gradient);
  }

  void hide(const at::Tensor& parameter) {
    if (!parameter.grad().defined()) return;
    hidden_.emplace_back(parameter, at::Tensor());
    hidden_.back().second = std::exchange(hidden_.back().first.mutable_grad(), at::Tensor());
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> hidden_;
};

std::string bytes_of_state(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::string bytes;
  archive.save_to([&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  return bytes;
}

/// Only an optimizer itself knows which tensors its state has.
void load_state(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  torch::serialize::InputArchive archive;
  archive.load_from(bytes.data(), bytes.size(), device_of(optimizer));
  optimizer.load(archive);
}

}  // namespace

struct OptimizerShards::State {
  explicit State(Collectives& group) : collectives(group), plan(detail::empty_shard_plan(group.world_size())) {}

  /// Adds the parameters that the optimizer got since. Collective if there are any.
  void extend_to(const torch::optim::Optimizer& optimizer);
  [[nodiscard]] bool owns(const at::Tensor& parameter) const {
    return owners.at(parameter.unsafeGetTensorImpl()) == collectives.rank();
  }

  Collectives& collectives;
  detail::ShardPlan plan;
  std::unordered_map<const at::TensorImpl*, int> owners;
  std::vector<detail::ShardExchange> exchanges;  // one an extension
};

void OptimizerShards::State::extend_to(const torch::optim::Optimizer& optimizer) {
  std::vector<NamedTensor> added;
  std::vector<std::int64_t> bytes;
  for (std::size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    for (const at::Tensor& parameter : optimizer.param_groups()[group].params()) {
      if (!owners.emplace(parameter.unsafeGetTensorImpl(), collectives.rank()).second) continue;
      added.push_back({"group " + std::to_string(group) + " number " + std::to_string(added.size()), parameter});
      bytes.push_back(gradient_bytes_of(parameter));
    }
  }
  if (added.empty()) return;
  detail::require_same_model(detail::describe_model(added, {}), collectives);
  std::size_t next = plan.owners.size();
  plan = detail::extend(std::move(plan), bytes);
  std::vector<std::vector<at::Tensor>> shards(plan.bytes.size());
  for (const auto& [name, parameter] : added) {
    const int owner = plan.owners[next++];
    owners[parameter.unsafeGetTensorImpl()] = owner;
    if (parameter.requires_grad()) shards[static_cast<std::size_t>(owner)].push_back(parameter);
  }
  exchanges.emplace_back(shards, sends_over_links(collectives));
}

OptimizerShards::OptimizerShards(torch::optim::Optimizer& optimizer, Collectives& collectives)
    : state_(std::make_unique<State>(collectives)) {
  refuse_coupled(optimizer);
  state_->extend_to(optimizer);
  drop_foreign_state(optimizer);
}

OptimizerShards::~OptimizerShards() = default;
OptimizerShards::OptimizerShards(OptimizerShards&&) noexcept = default;
OptimizerShards& OptimizerShards::operator=(OptimizerShards&&) noexcept = default;

void OptimizerShards::step(torch::optim::Optimizer& optimizer) {
  state_->extend_to(optimizer);
  drop_foreign_state(optimizer);
  {
    HiddenGradients hidden;
    for (const auto& group : optimizer.param_groups()) {
      for (const at::Tensor& parameter : group.params()) {
        if (!state_->owns(parameter)) hidden.hide(parameter);
      }
    }
    optimizer.step();
  }
  for (auto& exchange : state_->exchanges) exchange.run(state_->collectives);
}

// Only an optimizer can write and read its own kind of state, and reading adds to the existing state.
void OptimizerShards::gather_state(torch::optim::Optimizer& optimizer, int rank) {
  at::NoGradGuard no_grad;
  state_->extend_to(optimizer);
  drop_foreign_state(optimizer);
  Collectives& collectives = state_->collectives;
  if (collectives.world_size() == 1) return;
  const std::string mine = bytes_of_state(optimizer);
  for (int root = 0; root < collectives.world_size(); ++root) {
    const bool is_mine = root == collectives.rank();
    const std::string bytes = broadcast(collectives, is_mine ? mine : std::string(), root);
    if (is_mine || (rank != kAllRanks && rank != collectives.rank())) continue;
    load_state(optimizer, bytes);
  }
}

void OptimizerShards::drop_foreign_state(torch::optim::Optimizer& optimizer) const {
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      const auto found = state_->owners.find(parameter.unsafeGetTensorImpl());
      if (found == state_->owners.end() || found->second == state_->collectives.rank()) continue;
      optimizer.state().erase(parameter.unsafeGetTensorImpl());
    }
  }
}

void detail::place_state(torch::optim::Optimizer& optimizer) {
  if (device_of(optimizer).is_cpu() || !is_on_one_device(optimizer)) return;
  load_state(optimizer, bytes_of_state(optimizer));
}

int OptimizerShards::owner(const at::Tensor& parameter) const {
  return state_->owners.at(parameter.unsafeGetTensorImpl());
}

}  // namespace lrun
