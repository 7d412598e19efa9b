#pragma once

#include <ATen/core/Tensor.h>
#include <lrun/collectives.h>
#include <lrun/export.h>
#include <lrun/model.h>
#include <lrun/optimizer.h>
#include <lrun/strategy.h>
#include <lrun/world.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace torch::optim {
class OptimizerParamGroup;
}

namespace lrun {

struct LoaderOptions;
class DistributedSampler;
template <class Dataset>
class DataLoader;
template <class Module>
class DistributedDataParallel;

/// How a Session joins a run, and what its models, loaders and optimizers do by default.
struct SessionOptions {
  /// The place of this process among the ranks. Default: World::from_environment().
  std::optional<World> world;
  /// 'ddp', 'dp', 'ddp2', 'ddp_sharded', 'horovod' (ddp with scaled learning rates), 'single' (in a world of one), or a
  /// registered one (register_strategy()). Default: LRUN_STRATEGY, else ddp.
  std::optional<std::string> strategy;
  /// The devices of this process: one, or several under dp and ddp2 ({"cpu", "cpu"}: two replicas on the CPU;
  /// {"cuda:0", "cuda:1"}: one on each GPU). 'cuda' alone is the GPU of the local rank. Default: World::devices. If
  /// that is empty, `world` and `connect` are not given and `backend` names no CPU backend: the GPU of the local rank
  /// (all visible GPUs under dp and ddp2), or the CPU if there is no GPU. If the node has a GPU driver but no GPU can
  /// be used, local rank 0 prints a warning on stderr unless `banner` is off.
  std::vector<std::string> devices = {};
  /// Collectives by name ('shm', …). Default: LRUN_PROCESS_GROUP_BACKEND, else the best for this world: 'nccl' on GPUs.
  /// Other backends reduce GPU tensors through copies on the CPU.
  std::string backend;
  /// How long one collective operation may wait for the other ranks.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// All ranks use rank 0's. Default: LRUN_SEED, else 0.
  std::optional<std::uint64_t> seed;
  /// How gradients are packed. WrapOptions of a model take precedence.
  GradientSyncOptions gradients;
  /// The checks during training. WrapOptions of a model take precedence.
  GuardOptions guards = {};
  /// Loaders give each rank its own samples. LoaderOptions of a loader take precedence.
  bool use_distributed_sampler = true;
  /// Under strategy 'horovod' optimizer() multiplies learning rates by the world size, so that programs give the rate
  /// for one process. False: rates stay as given, for programs that scale them themselves.
  bool scale_learning_rate = true;
  /// Rank 0 prints on stderr the group that it joined and the meaning of the effective batch size. Nothing is printed
  /// in a world of one device.
  bool banner = true;
  /// Joins the ranks in your own way: returns this rank's group.
  std::function<std::unique_ptr<Collectives>(const World&)> connect;
};

/// The membership of this process in a run: the constructor joins the group, the destructor leaves it.
///
/// The same program runs under every strategy and on one device; `lrun --strategy` decides. Without a launcher it is a
/// world of one, in which nothing is communicated.
///
/// Devices  a session on GPUs makes device() the current device of its thread. If the program does not link LibTorch's
///          CUDA library, the session loads it. LibTorch accepts that only before its first use: create the session
///          first in main().
/// Threads  the training thread. Several sessions may live in one process if their `connect` allows it. LibTorch takes
///          its number of threads from OMP_NUM_THREADS, which the launcher sets; a session does not change it.
/// Lifetime must outlive the models made by wrap().
class LRUN_EXPORT Session {
 public:
  /// \throws lrun::BadEnvironment     the worker environment is malformed.
  /// \throws lrun::Unsupported        strategy or backend is not in this version or build, or a device is missing or
  ///                                  cannot be used by LibTorch or its driver. Thrown before any tensor work.
  /// \throws lrun::CollectiveTimeout  not all ranks joined within `timeout`.
  explicit Session(SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const World& world() const { return world_; }              ///< The place of this process in the run.
  [[nodiscard]] int rank() const { return world_.rank; }                   ///< 0 … world_size() − 1.
  [[nodiscard]] int world_size() const { return world_.world_size; }       ///< All ranks of all nodes.
  [[nodiscard]] bool is_rank_zero() const { return world_.rank == 0; }     ///< For what one rank is to do or print.
  [[nodiscard]] const std::string& strategy() const { return strategy_; }  ///< Its name, for example 'ddp'.
  /// The device of wrapped models, to which batches are moved.
  [[nodiscard]] at::Device device() const { return device_; }
  /// All devices of this process: device() alone, or those over which dp and ddp2 split each batch.
  [[nodiscard]] const std::vector<at::Device>& devices() const { return devices_; }
  /// The same on all ranks. Call torch::manual_seed(session.seed()) before the model is made.
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  /// A different seed on each rank, the same in every run. Call torch::manual_seed(session.rank_seed()) after the model
  /// is made, so that dropout and augmentation differ between ranks.
  [[nodiscard]] std::uint64_t rank_seed() const;
  /// Communication among the ranks, for operations of your own.
  [[nodiscard]] Collectives& collectives() { return *collectives_; }

  /// Moves the module to device(), copies rank 0's parameters and buffers to all ranks, and makes a model that trains
  /// under the session's strategy. The tensors stay the same objects, so the optimizer may be made before. Takes a
  /// shared_ptr to a module or a module holder (TORCH_MODULE). Makes the replicas if there are several devices.
  /// \throws lrun::RankMismatch     on all ranks; names the first parameter that differs.
  /// \throws std::invalid_argument  another living model trains one of the parameters (names it), or a replica differs.
  /// \throws lrun::Unsupported      no replica of the module can be made (WrapOptions::make_replica).
  template <class Module>
  Model<Module> wrap(std::shared_ptr<Module> module, const std::optional<WrapOptions>& options = std::nullopt) {
    auto strategy = make_strategy(module, options, detail::default_maker(module), detail::kLacksClone<Module>);
    return Model<Module>(std::move(module), std::move(strategy), device_);
  }
  /// As above for a module holder.
  template <class ModuleHolder>
  requires requires(const ModuleHolder& module_holder) { module_holder.ptr(); }
  auto wrap(const ModuleHolder& module_holder, const std::optional<WrapOptions>& options = std::nullopt) {
    return wrap(module_holder.ptr(), options);
  }

  /// Makes a loader of this rank's samples: each epoch has a new order, the same on all ranks, and each sample goes to
  /// one rank. Include <lrun/data_loader.h>.
  /// \return std::unique_ptr<DataLoader<Dataset>>; loop over `*loader`.
  /// \throws std::invalid_argument  a batch size of 0, or a data set that does not know its size.
  template <class Dataset>
  requires(!Dataset::is_stateful) std::unique_ptr<DataLoader<Dataset>> loader(Dataset dataset,
                                                                              const LoaderOptions& options) {
    const auto size = dataset.size();
    if (!size) throw std::invalid_argument("the data set does not know its size: read it without a sampler");
    return std::make_unique<DataLoader<Dataset>>(std::move(dataset), sampler(*size, options), options);
  }

  /// Makes a loader of a stateful data set (torch::data::datasets::StatefulDataset, ChunkDataset). There is no sampler:
  /// every rank reads all that its own data set gives.
  /// \return std::unique_ptr<torch::data::StatefulDataLoader<Dataset>>.
  template <class Dataset>
  requires(Dataset::is_stateful) auto loader(Dataset dataset, const LoaderOptions& options) {
    return make_iterable_loader(std::move(dataset), options);
  }

  /// Makes the sampler that loader() uses.
  [[nodiscard]] DistributedSampler sampler(std::size_t dataset_size, const LoaderOptions& options);

  /// Makes an optimizer over the model's parameters. `options` is what torch's optimizer takes: its options or a
  /// learning rate. Under ddp_sharded the state is split over the ranks, and the call is collective.
  ///
  /// Under horovod the learning rate of all groups becomes rate · world size (SessionOptions::scale_learning_rate), and
  /// rank 0 prints that (SessionOptions::banner). Schedulers continue from the scaled rate; a rate that the program
  /// sets later is used unchanged. An archive of the optimizer keeps the factor: loaded in a world of another size, or
  /// under another strategy, its rates become those of that run.
  /// \throws lrun::Unsupported      under ddp_sharded an optimizer whose state cannot be split (LBFGS); under horovod
  ///                                one whose options do not implement get_lr() and set_lr().
  /// \throws std::invalid_argument  a parameter is in two groups.
  template <class TorchOptimizer, class Module, class Options>
  Optimizer<TorchOptimizer> optimizer(const Model<Module>& model, const Options& options) {
    return Optimizer<TorchOptimizer>(model.parameters(), options, collectives_.get(), splits_optimizer_state(),
                                     learning_rate_scale());
  }
  /// Makes an optimizer over parameter groups of wrapped models. The groups are the same on all ranks.
  template <class TorchOptimizer, class Options>
  Optimizer<TorchOptimizer> optimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                                      const Options& options) {
    return Optimizer<TorchOptimizer>(groups, options, collectives_.get(), splits_optimizer_state(),
                                     learning_rate_scale());
  }

  /// Samples per optimizer step for loaders with batches of `loader_batch`: loader_batch · world size, which is devices
  /// · nodes under ddp, ddp_sharded and horovod, nodes under ddp2, and 1 under dp.
  [[nodiscard]] std::int64_t effective_batch_size(std::int64_t loader_batch) const;

  /// Returns when all ranks have called it.
  void barrier();

  /// Reduces a metric: the sum, average, … of every rank's `value` in a new tensor of the same shape, equal on all
  /// ranks. Collective. `value` is detached; integers cannot be averaged.
  [[nodiscard]] at::Tensor all_reduce(const at::Tensor& value, ReduceOp op = ReduceOp::kAverage);
  /// Reduces one number, in double.
  [[nodiscard]] double all_reduce(double value, ReduceOp op = ReduceOp::kAverage);

 private:
  template <class Module>
  friend class DistributedDataParallel;

  /// Moves the module to device(). \return the options with the session's own where none are given.
  WrapOptions prepare(torch::nn::Module* module, const std::optional<WrapOptions>& given) const;
  std::unique_ptr<Strategy> make_strategy(std::shared_ptr<torch::nn::Module> module,
                                          const std::optional<WrapOptions>& options, const ModuleMaker& maker,
                                          bool maker_is_constructor);
  [[nodiscard]] LearningRateScale learning_rate_scale() const;
  [[nodiscard]] bool splits_optimizer_state() const { return strategy_ == "ddp_sharded"; }

  SessionOptions options_;
  World world_;
  std::vector<at::Device> devices_;
  std::string strategy_;
  at::Device device_;  // the first of them
  std::unique_ptr<Collectives> collectives_;
  std::uint64_t seed_ = 0;
  bool batch_size_was_said_ = false;
};

}  // namespace lrun
