#pragma once

#include <lrun/distributed_sampler.h>
#include <torch/data/dataloader/stateless.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

namespace lrun {

/// How Session::loader() reads a data set.
struct LoaderOptions {
  std::size_t batch_size = 1;  ///< Samples a batch of one rank (under dp and ddp2: of one process).
  std::size_t workers = 0;     ///< Loading threads, each with its own copy of the data set; 0: the training thread.
  bool shuffle = true;
  bool drop_last_batch = false;  ///< Leave out the last batch of an epoch when it is smaller.
  Remainder remainder = Remainder::kPad;
  /// False: every rank reads the whole data set, in the same order. Default: SessionOptions::use_distributed_sampler.
  std::optional<bool> distributed = std::nullopt;
  /// Default: the session's seed.
  std::optional<std::uint64_t> seed = std::nullopt;
  /// Longest wait for a batch of the loading threads; then the loop over the loader throws (a c10::Error that says so).
  /// A thread that is stuck in the data set cannot be ended: the next begin() and the loader's destructor wait for it
  /// without a deadline, so that only the end of the process ends it. Default: none.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

/// torch's data loader with a sampler that knows world and rank, and that can be reached.
/// Each begin() reads the next epoch in a new order. Threads: the training thread.
template <class Dataset>
class DataLoader : public torch::data::StatelessDataLoader<Dataset, DistributedSampler> {
 public:
  DataLoader(Dataset dataset, DistributedSampler sampler, const LoaderOptions& options)
      : torch::data::StatelessDataLoader<Dataset, DistributedSampler>(std::move(dataset), sampler,
                                                                      torch_options(options)),
        sampler_(std::move(sampler)),
        batch_size_(options.batch_size),
        drop_last_batch_(options.drop_last_batch) {}

  /// Begins the next epoch, also when the one before was left early (torch's own refuses that with loading threads).
  auto begin() {
    this->shuttle_.drain();
    return torch::data::StatelessDataLoader<Dataset, DistributedSampler>::begin();
  }

  /// The next begin() reads this epoch; call it only to go on from a checkpoint.
  void set_epoch(std::size_t epoch) { sampler_.set_epoch(epoch); }
  [[nodiscard]] std::size_t epoch() const { return sampler_.epoch(); }  ///< The epoch that was begun last.

  /// Batches of this rank in an epoch.
  [[nodiscard]] std::size_t batches() const {
    return (sampler_.size() + (drop_last_batch_ ? 0 : batch_size_ - 1)) / batch_size_;
  }
  [[nodiscard]] std::size_t samples() const { return sampler_.size(); }  ///< Samples of this rank in an epoch.
  [[nodiscard]] const DistributedSampler& sampler() const { return sampler_; }

 private:
  static torch::data::DataLoaderOptions torch_options(const LoaderOptions& options) {
    torch::data::DataLoaderOptions result(options.batch_size);
    result.workers(options.workers).drop_last(options.drop_last_batch);
    if (options.timeout) result.timeout(*options.timeout);
    return result;
  }

  DistributedSampler sampler_;
  std::size_t batch_size_;
  bool drop_last_batch_;
};

}  // namespace lrun
