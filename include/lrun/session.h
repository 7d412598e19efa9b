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

struct SessionOptions {
  /// Who this process is. Default: World::from_environment().
  std::optional<World> world;
  /// 'ddp', 'dp', 'ddp2', 'ddp_sharded', 'horovod' (ddp with learning rates that are scaled), 'single' (in a world of
  /// one), or one that register_strategy() knows. Default: LRUN_STRATEGY, else ddp.
  std::optional<std::string> strategy;
  /// What this process trains on: one device, several under dp and ddp2 ({"cpu", "cpu"}: two replicas on the CPU;
  /// {"cuda:0", "cuda:1"}: one on each GPU). 'cuda' alone is the GPU of the local rank.
  /// Default: World::devices. Where that is empty, `world` and `connect` are not given and `backend` names none for
  /// CPUs: the GPU of the local rank (under dp and ddp2 all that are visible), and the CPU where there is none. Where
  /// the node has a driver of GPUs and yet none can be used, local rank 0 says so on stderr, unless `banner` is off.
  std::vector<std::string> devices = {};
  /// Collectives by name ('shm', …). Default: LRUN_PROCESS_GROUP_BACKEND, else the best for this world: 'nccl' on GPUs.
  /// Others take the tensors of a GPU through copies on the CPU.
  std::string backend;
  /// Longest wait of one collective operation for the other ranks.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// The same on all ranks (rank 0's counts). Default: LRUN_SEED, else 0.
  std::optional<std::uint64_t> seed;
  /// How gradients are packed, for models whose WrapOptions do not say.
  GradientSyncOptions gradients;
  /// What is watched while training, for models whose WrapOptions do not say.
  GuardOptions guards = {};
  /// Loaders give each rank its own samples. LoaderOptions of one loader go first.
  bool use_distributed_sampler = true;
  /// Under strategy 'horovod' optimizer() multiplies learning rates by the world size, so that a program says the rate
  /// that is right for one process. False: they stay as they are, for programs that scale them themselves.
  bool scale_learning_rate = true;
  /// Rank 0 says on stderr what it joined, and what the effective batch size means. Silent on a single device.
  bool banner = true;
  /// Your own way of joining (the seeds' init_ddp_connection): returns the group of this rank.
  std::function<std::unique_ptr<Collectives>(const World&)> connect;
};

/// Membership of this process in the run: joins the group when made, leaves it when destroyed.
///
/// Same program for every strategy and for one device; `lrun --strategy` decides. Alone it is a world of one, in which
/// nothing is communicated.
///
/// Devices  a session on GPUs makes device() the current one of its thread. Where LibTorch's CUDA library is not
///          linked, the session loads it; LibTorch takes it only as long as it was not used, so the session comes
///          first in main().
/// Threads  the training thread. Several sessions may live in one process if their `connect` allows it. LibTorch takes
///          the number of its own threads from OMP_NUM_THREADS, which the launcher sets; a session leaves it alone.
/// Lifetime must outlive the models made by wrap().
class LRUN_EXPORT Session {
 public:
  /// \throws lrun::BadEnvironment     the worker environment is malformed.
  /// \throws lrun::Unsupported        strategy or backend is not in this version or build; a device that is not
  ///                                  there, or that LibTorch or its driver cannot use. Before any tensor work.
  /// \throws lrun::CollectiveTimeout  not all ranks came within `timeout`.
  explicit Session(SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] int rank() const { return world_.rank; }
  [[nodiscard]] int world_size() const { return world_.world_size; }
  [[nodiscard]] bool is_rank_zero() const { return world_.rank == 0; }
  [[nodiscard]] const std::string& strategy() const { return strategy_; }
  /// Where wrapped models live and batches are moved to.
  [[nodiscard]] at::Device device() const { return device_; }
  /// Of this process: device() alone, or all over which dp and ddp2 split each batch.
  [[nodiscard]] const std::vector<at::Device>& devices() const { return devices_; }
  /// The same on all ranks: torch::manual_seed(session.seed()) before the model is made.
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  /// Another one on each rank, unrelated to those of other ranks and seeds: torch::manual_seed(session.rank_seed())
  /// after the model was made, so that dropout and augmentation differ between the ranks. The same in every run.
  [[nodiscard]] std::uint64_t rank_seed() const;
  [[nodiscard]] Collectives& collectives() { return *collectives_; }

  /// Moves the module to device(), gives all ranks rank 0's parameters and buffers, and trains it under the session's
  /// strategy. Its tensors stay the same objects: an optimizer may have been made before.
  /// Takes a shared_ptr to a module or a module holder (TORCH_MODULE). With several devices it makes the replicas.
  /// \throws lrun::RankMismatch     on all ranks; names the first parameter that differs.
  /// \throws std::invalid_argument  a parameter that another living model trains; names it. A replica that differs.
  /// \throws lrun::Unsupported      a module of which no replica can be made (WrapOptions::make_replica).
  template <class Module>
  Model<Module> wrap(std::shared_ptr<Module> module, const std::optional<WrapOptions>& options = std::nullopt) {
    auto strategy = make_strategy(module, options, detail::default_maker(module), detail::kLacksClone<Module>);
    return Model<Module>(std::move(module), std::move(strategy), device_);
  }
  template <class Holder>
  requires requires(const Holder& holder) { holder.ptr(); }
  auto wrap(const Holder& holder, const std::optional<WrapOptions>& options = std::nullopt) {
    return wrap(holder.ptr(), options);
  }

  /// A loader of this rank's samples: a new order every epoch, the same on all ranks, each sample on one rank.
  /// Include <lrun/data_loader.h>. \return std::unique_ptr<DataLoader<Dataset>>; loop over `*loader`.
  /// \throws std::invalid_argument  a batch size of 0, or a data set that does not know its size.
  template <class Dataset>
  requires(!Dataset::is_stateful) std::unique_ptr<DataLoader<Dataset>> loader(Dataset dataset,
                                                                              const LoaderOptions& options) {
    const auto size = dataset.size();
    if (!size) throw std::invalid_argument("the data set does not know its size: read it without a sampler");
    return std::make_unique<DataLoader<Dataset>>(std::move(dataset), sampler(*size, options), options);
  }

  /// A loader of a stateful data set (torch::data::datasets::StatefulDataset, ChunkDataset), which is left alone: no
  /// sampler, and every rank reads what its own data set gives.
  /// \return std::unique_ptr<torch::data::StatefulDataLoader<Dataset>>.
  template <class Dataset>
  requires(Dataset::is_stateful) auto loader(Dataset dataset, const LoaderOptions& options) {
    return make_iterable_loader(std::move(dataset), options);
  }

  /// The sampler that loader() uses.
  [[nodiscard]] DistributedSampler sampler(std::size_t dataset_size, const LoaderOptions& options);

  /// An optimizer over the model's parameters. `options` is what torch's optimizer takes: its options or a learning
  /// rate. Under ddp_sharded its state is split over the ranks, and making it is collective.
  ///
  /// Under horovod the learning rate becomes rate · world size (SessionOptions::scale_learning_rate), in all groups,
  /// and rank 0 says so (SessionOptions::banner). That is the rate of the optimizer from then on: schedulers go on from
  /// it, and a rate that the program sets later is taken as it is. An archive of the optimizer keeps the factor; loaded
  /// in a world of another size, or under another strategy, its rates become those of that run.
  /// \throws lrun::Unsupported      an optimizer whose state cannot be split (LBFGS) under ddp_sharded; one whose
  ///                                options do not tell their learning rate under horovod.
  /// \throws std::invalid_argument  a parameter that is in two groups.
  template <class TorchOptimizer, class Module, class Options>
  Optimizer<TorchOptimizer> optimizer(const Model<Module>& model, const Options& options) {
    return Optimizer<TorchOptimizer>(model.parameters(), options, split_over(), learning_rate_scale());
  }
  /// The same over parameter groups, which hold parameters of wrapped models, alike on all ranks.
  template <class TorchOptimizer, class Options>
  Optimizer<TorchOptimizer> optimizer(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                                      const Options& options) {
    return Optimizer<TorchOptimizer>(groups, options, split_over(), learning_rate_scale());
  }

  /// Samples behind one optimizer step for loaders with batches of `loader_batch`: loader_batch · world size, which is
  /// devices · nodes under ddp, ddp_sharded and horovod, nodes under ddp2, and 1 under dp.
  [[nodiscard]] std::int64_t effective_batch_size(std::int64_t loader_batch) const;

  /// Returns when all ranks have called it.
  void barrier();

  /// A metric over all ranks: the sum, average, … of every rank's `value`, in a new tensor of the same shape, the same
  /// on every rank. Collective. `value` is detached; integers cannot be averaged.
  [[nodiscard]] at::Tensor all_reduce(const at::Tensor& value, ReduceOp op = ReduceOp::kAverage);
  /// The same of one number, in double.
  [[nodiscard]] double all_reduce(double value, ReduceOp op = ReduceOp::kAverage);

 private:
  std::unique_ptr<Strategy> make_strategy(std::shared_ptr<torch::nn::Module> module,
                                          const std::optional<WrapOptions>& options, const ModuleMaker& maker,
                                          bool maker_is_constructor);
  [[nodiscard]] LearningRateScale learning_rate_scale() const;
  [[nodiscard]] Collectives* split_over() { return strategy_ == "ddp_sharded" ? collectives_.get() : nullptr; }

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
