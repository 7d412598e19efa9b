#pragma once

#include <lrun/distributed_sampler.h>
#include <torch/data/dataloader/stateful.h>
#include <torch/data/dataloader/stateless.h>
#include <torch/data/iterator.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace lrun {

/// How Session::loader() reads a data set.
struct LoaderOptions {
  std::size_t batch_size = 1;  ///< Samples per batch of one rank (under dp and ddp2: of one process).
  std::size_t workers = 0;  ///< Loading threads, each with its own copy of the data set; 0: the training thread loads.
  bool shuffle = true;      ///< False: the data set's own order.
  bool drop_last_batch = false;           ///< Drop the last batch of an epoch if it is smaller.
  Remainder remainder = Remainder::kPad;  ///< If the samples cannot be divided evenly over the ranks.
  /// False: every rank reads the whole data set, in the same order. Default: SessionOptions::use_distributed_sampler.
  std::optional<bool> distributed = std::nullopt;
  /// Default: the session's seed.
  std::optional<std::uint64_t> seed = std::nullopt;
  /// Only these samples of the data set. Default: all.
  std::optional<std::vector<std::size_t>> subset = std::nullopt;
  /// One weight per sample: samples are drawn with replacement; see DistributedSamplerOptions.
  std::vector<double> weights = {};
  std::size_t draws = 0;  ///< Samples drawn by `weights` per epoch, on all ranks together. 0: as many as there are.
  /// Your own sampler: the samples of an epoch in order, the same on all ranks, which divide them. With `distributed =
  /// false` each rank reads all samples of its own sampler.
  std::function<std::vector<std::size_t>(std::size_t epoch)> order = nullptr;
  /// How long to wait for a batch of the loading threads. Then the loop over the loader throws a c10::Error that says
  /// so. A thread that hangs in the data set cannot be stopped: the next begin() and the loader's destructor wait for
  /// it without a deadline, so only the end of the process stops it. Default: no limit.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

/// Torch's data loader with an accessible sampler that knows world and rank. Each begin() reads the next epoch in a new
/// order. Threads: the training thread.
template <class Dataset>
class DataLoader : public torch::data::StatelessDataLoader<Dataset, DistributedSampler> {
 public:
  /// Session::loader() makes one with the sampler of its rank.
  DataLoader(Dataset dataset, DistributedSampler sampler, const LoaderOptions& options)
      : Loader(std::move(dataset), sampler, torch_options(options)),
        sampler_(std::move(sampler)),
        batch_size_(options.batch_size),
        drop_last_batch_(options.drop_last_batch) {}

  /// Begins the next epoch, also if the previous one was left early (torch's loader refuses that with loading threads).
  auto begin() {
    this->shuttle_.drain();
    Loader::begin();  // resets torch's state; its iterator would not count delivered batches
    delivered_ = 0;
    exhausted_ = false;
    return torch::data::Iterator<Batch>(
        std::make_unique<torch::data::detail::ValidIterator<Batch>>([this] { return next_batch(); }));
  }

  /// The next begin() reads this epoch. Call it only to continue from a checkpoint.
  void set_epoch(std::size_t epoch) { sampler_.set_epoch(epoch); }
  [[nodiscard]] std::size_t epoch() const { return sampler_.epoch(); }  ///< The epoch that was begun last.

  /// The next begin() continues here, with any number of ranks and any batch size: each sample of the epoch that was
  /// not taken before is read once. The begin() after it reads the next epoch.
  void set_position(DataPosition position) { sampler_.set_position(position); }
  /// The position for a checkpoint: after the last batch that the loop got, on all ranks. Samples that loading threads
  /// have read ahead do not count.
  [[nodiscard]] DataPosition position() const {
    if (exhausted_) return {epoch() + 1, 0};
    return sampler_.position_after(delivered_ * batch_size_);
  }

  /// The number of batches of this rank per epoch.
  [[nodiscard]] std::size_t batches() const {
    return (sampler_.size() + (drop_last_batch_ ? 0 : batch_size_ - 1)) / batch_size_;
  }
  [[nodiscard]] std::size_t samples() const { return sampler_.size(); }         ///< Of this rank per epoch.
  [[nodiscard]] const DistributedSampler& sampler() const { return sampler_; }  ///< Knows the rank's samples.

 private:
  using Loader = torch::data::StatelessDataLoader<Dataset, DistributedSampler>;
  using Batch = typename Loader::BatchType;

  std::optional<Batch> next_batch() {
    auto batch = this->next();
    if (batch) {
      ++delivered_;
    } else {
      exhausted_ = true;
    }
    return batch;
  }

  static torch::data::DataLoaderOptions torch_options(const LoaderOptions& options) {
    torch::data::DataLoaderOptions result(options.batch_size);
    result.workers(options.workers).drop_last(options.drop_last_batch);
    if (options.timeout) result.timeout(*options.timeout);
    return result;
  }

  DistributedSampler sampler_;
  std::size_t batch_size_;
  bool drop_last_batch_;
  std::size_t delivered_ = 0;  // batches of the epoch that the loop has got
  bool exhausted_ = false;     // the epoch's loop has ended
};

/// Session::loader() of a stateful data set: torch's own loader without a sampler. The data set itself gives each rank
/// its share; every rank has to produce the same number of batches.
template <class Dataset>
std::unique_ptr<torch::data::StatefulDataLoader<Dataset>> make_iterable_loader(Dataset dataset,
                                                                               const LoaderOptions& options) {
  if (options.subset || options.order || !options.weights.empty()) {
    throw std::invalid_argument(
        "an iterable data set chooses its samples itself: it takes no subset, weights or order");
  }
  torch::data::DataLoaderOptions result(options.batch_size);
  result.workers(options.workers).drop_last(options.drop_last_batch);
  if (options.timeout) result.timeout(*options.timeout);
  return std::make_unique<torch::data::StatefulDataLoader<Dataset>>(std::move(dataset), result);
}

}  // namespace lrun
