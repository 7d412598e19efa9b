// In: the options of the program and its environment. Out: this rank's membership: its group, devices and seed, and the
// models and optimizers made with them. Implements <lrun/session.h>.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <lrun/data_loader.h>
#include <lrun/error.h>
#include <lrun/session.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "base/message.h"
#include "process/progress.h"
#include "runtime/collectives/common/reported_collectives.h"
#include "runtime/collectives/common/staged_collectives.h"
#include "runtime/collectives/cuda_library.h"
#include "runtime/collectives/registry.h"
#include "runtime/data/split_mix.h"
#include "runtime/dp/data_parallel.h"
#include "runtime/dp/replica_connection.h"
#include "runtime/session/backend_choice.h"
#include "runtime/session/banner.h"
#include "runtime/session/crash_report.h"
#include "runtime/session/devices.h"
#include "runtime/session/strategy.h"

namespace lrun::detail {
namespace {

std::unique_ptr<Collectives> join_own_group(const World& world, const SessionOptions& options) {
  auto collectives = options.connect(world);
  if (!collectives) throw std::invalid_argument("SessionOptions::connect returned nothing");
  if (collectives->rank() != world.rank || collectives->world_size() != world.world_size) {
    throw std::invalid_argument("SessionOptions::connect returned rank " + std::to_string(collectives->rank()) +
                                " of " + std::to_string(collectives->world_size()) + " for rank " +
                                std::to_string(world.rank) + " of " + std::to_string(world.world_size));
  }
  return collectives;
}

StoreAddress store_of(const World& world) {
  if (world.master_address.empty()) throw BadEnvironment("environment variable 'MASTER_ADDR' is missing");
  if (world.master_port == 0) throw BadEnvironment("environment variable 'MASTER_PORT' is missing");
  return {world.master_address, world.master_port, world.rank == 0 && !world.uses_agent_store};
}

std::unique_ptr<Collectives> join_lruns_group(const World& world, const SessionOptions& options, at::Device device) {
  GroupOptions group;
  group.rank = world.rank;
  group.world_size = world.world_size;
  group.timeout = options.timeout;
  const std::string backend = choose_session_backend(world, options, device);
  if (world.world_size == 1) return make_collectives(backend, group);
  group.store = store_of(world);
  // A store may outlive an attempt: ranks of a new attempt must not read the keys of the last. lrun's store is new in
  // each attempt.
  const std::string run = world.source == WorldSource::kLrun ? std::string() : world.run_id;
  group.name = run + "/" + std::to_string(world.restart_count);
  return make_collectives(backend, group);
}

/// A group whose memory is the CPU's gets copies of tensors on other devices.
std::unique_ptr<Collectives> stage_for(at::Device device, std::unique_ptr<Collectives> group) {
  if (device.is_cpu() || group->allocate_bucket(1, at::kFloat).device() == device) return group;
  return make_staged(std::move(group), device);
}

/// The calls of lrun's workers are reported to lrun, which may ask for them or not.
std::unique_ptr<Collectives> join_group(const World& world, const SessionOptions& options, at::Device device) {
  if (options.connect) return stage_for(device, join_own_group(world, options));
  if (world.source != WorldSource::kLrun) return stage_for(device, join_lruns_group(world, options, device));
  const char* const place = std::getenv(kProgressVariable);  // NOLINT(concurrency-mt-unsafe): of the caller's thread
  auto reporter = std::make_shared<const CallReporter>(place);
  const auto join = [&] {
    const CallReporter::Call call(*reporter, ReportedOperation::kInitProcessGroup);
    return stage_for(device, join_lruns_group(world, options, device));
  };
  return report_calls(join(), reporter);
}

/// To the device, unless it is there.
void place(torch::nn::Module& module, at::Device device) {
  const auto is_elsewhere = [&](const at::Tensor& tensor) { return tensor.defined() && tensor.device() != device; };
  const bool moves =
      std::ranges::any_of(module.parameters(), is_elsewhere) || std::ranges::any_of(module.buffers(), is_elsewhere);
  if (moves) module.to(device);
}

/// Rank 0's seed, so that ranks whose programs disagree still make the same model.
std::uint64_t agree_on_seed(std::uint64_t mine, Collectives& collectives) {
  auto seed = at::full({1}, static_cast<std::int64_t>(mine), at::kLong);
  collectives.broadcast(seed, 0);
  return static_cast<std::uint64_t>(seed.item<std::int64_t>());
}

std::vector<std::string> device_names(const std::vector<at::Device>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.str());
  return names;
}

// One write, so that lines of several processes do not mix.
void say(const std::string& line) { std::cerr << line + "\n" << std::flush; }
void warn(const std::string& text) { std::cerr << message_line(Severity::kWarning, text) << std::flush; }

/// Prints the warning of choose_devices(). A process of each node may find other GPUs than the next node's: its first
/// rank warns.
std::vector<at::Device> devices_of(const World& world, const SessionOptions& options) {
  auto [devices, warning] = choose_devices(world, options);
  if (warning && options.banner && world.local_rank == 0) warn(*warning);
  return devices;
}

std::unique_ptr<Strategy> make_data_parallel(const StrategyContext& context, const std::vector<at::Device>& devices,
                                             const SessionOptions& options) {
  const std::string& backend = options.backend.empty() ? context.world.backend : options.backend;
  auto [group, warning] = connect_replicas(devices, backend, options.timeout, make_replica_link);
  if (warning && options.banner) warn(*warning);
  return std::make_unique<DataParallel>(context, devices, std::move(group));
}

}  // namespace
}  // namespace lrun::detail

namespace lrun {

Session::Session(SessionOptions options)
    : options_(std::move(options)),
      world_(options_.world ? *options_.world : World::from_environment()),
      devices_(detail::devices_of(world_, options_)),
      strategy_(detail::choose_strategy(options_.strategy.value_or(""), world_, devices_.size())),
      device_(devices_.front()),
      collectives_(detail::join_group(world_, options_, device_)) {
  if (world_.source == WorldSource::kLrun) detail::report_faults();  // to the launcher that reads it
  collectives_->devices_of_rank_ = devices_.size();
  seed_ = detail::agree_on_seed(options_.seed.value_or(world_.seed.value_or(0)), *collectives_);
  options_.banner = options_.banner && is_rank_zero() && (world_size() > 1 || devices_.size() > 1);
  if (options_.banner) {
    detail::say(
        detail::describe_session(world_, strategy_, collectives_->name(), detail::device_names(devices_), seed_));
  }
}

Session::~Session() = default;

std::uint64_t Session::rank_seed() const {
  return detail::SplitMix64(detail::SplitMix64(seed_).next() + static_cast<std::uint64_t>(world_.rank)).next();
}

WrapOptions Session::prepare(torch::nn::Module* module, const std::optional<WrapOptions>& given) const {
  if (module == nullptr) throw std::invalid_argument("there is no module to wrap");
  detail::place(*module, device_);
  WrapOptions options = given.value_or(WrapOptions());
  if (!options.gradients) options.gradients = options_.gradients;
  if (!options.guards) options.guards = options_.guards;
  return options;
}

std::unique_ptr<Strategy> Session::make_strategy(std::shared_ptr<torch::nn::Module> module,
                                                 const std::optional<WrapOptions>& given, const ModuleMaker& maker,
                                                 bool maker_is_constructor) {
  WrapOptions options = prepare(module.get(), given);
  if (!options.make_replica) options.make_replica = maker;
  const StrategyContext context{std::move(module), *collectives_, world_, device_, options};
  if (const auto make = detail::registered_strategy(strategy_)) {
    auto strategy = make(context);
    if (!strategy) throw std::invalid_argument("the maker of strategy '" + strategy_ + "' returned nothing");
    return strategy;
  }
  if (devices_.size() > 1) {
    auto strategy = detail::make_data_parallel(context, devices_, options_);
    const bool is_constructed = maker_is_constructor && !(given && given->make_replica);
    if (is_constructed && options_.banner) detail::warn(detail::describe_constructed_replicas(*context.module));
    return strategy;
  }
  return std::make_unique<ReplicatedModule>(context.module, context.collectives, options);
}

LearningRateScale Session::learning_rate_scale() const {
  const bool scales = strategy_ == "horovod" && options_.scale_learning_rate;
  return {.factor = scales ? world_size() : 1, .says = options_.banner};
}

DistributedSampler Session::sampler(std::size_t dataset_size, const LoaderOptions& options) {
  if (options.batch_size == 0) throw std::invalid_argument("a batch holds at least one sample");
  if (options_.banner && !batch_size_was_said_) {
    batch_size_was_said_ = true;
    detail::say(detail::describe_batch_size(static_cast<std::int64_t>(options.batch_size), world_size(),
                                            devices_.size(), learning_rate_scale().factor > 1));
  }
  DistributedSamplerOptions sampling;
  sampling.shuffle = options.shuffle;
  sampling.seed = options.seed.value_or(seed_);
  sampling.remainder = options.remainder;
  sampling.subset = options.subset;
  sampling.weights = options.weights;
  sampling.draws = options.draws;
  sampling.order = options.order;
  const bool distributed = options.distributed.value_or(options_.use_distributed_sampler);
  return distributed ? DistributedSampler(dataset_size, world_size(), rank(), sampling)
                     : DistributedSampler(dataset_size, 1, 0, sampling);
}

std::int64_t Session::effective_batch_size(std::int64_t loader_batch) const { return loader_batch * world_size(); }

void Session::barrier() { collectives_->barrier(); }

at::Tensor Session::all_reduce(const at::Tensor& value, ReduceOp op) {
  at::NoGradGuard no_grad;
  auto result = value.detach().to(device_).contiguous().clone();
  collectives_->all_reduce(result, op)->wait();
  return result;
}

double Session::all_reduce(double value, ReduceOp op) {
  return all_reduce(at::full({1}, value, at::kDouble), op).item<double>();
}

}  // namespace lrun
