#pragma once

#include <lrun/export.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace lrun {

/// How samples are divided if their number is not a multiple of the world size.
enum class Remainder {
  kPad,     ///< Every rank gets ⌈N/W⌉: the first samples of the epoch are repeated (torch's default).
  kDrop,    ///< Every rank gets ⌊N/W⌋: the last samples of the epoch are dropped (torch's drop_last).
  kUneven,  ///< Every sample once: the first N mod W ranks get one more. For evaluation without collectives per batch.
};

/// How DistributedSampler chooses and divides samples.
struct DistributedSamplerOptions {
  bool shuffle = true;                    ///< False: the data set's own order.
  std::uint64_t seed = 0;                 ///< Must be the same on all ranks.
  Remainder remainder = Remainder::kPad;  ///< If the samples cannot be divided evenly.
  /// Only these samples of the data set, for example those of training. Default: all.
  std::optional<std::vector<std::size_t>> subset = std::nullopt;
  /// One weight per sample (of `subset`, if given): each epoch then draws samples with replacement and with
  /// probabilities in proportion to the weights; `shuffle` has no effect. Empty: every sample once.
  std::vector<double> weights = {};
  /// Samples drawn by `weights` per epoch, on all ranks together. 0: as many as there are.
  std::size_t draws = 0;
  /// Your own sampler: the samples of an epoch in order, always the same for an epoch and the same on all ranks. Cannot
  /// be combined with subset, weights or draws.
  std::function<std::vector<std::size_t>(std::size_t epoch)> order = nullptr;
};

/// How far a training has read its data, for a checkpoint.
struct DataPosition {
  std::size_t epoch = 0;  ///< 0 is the first.
  /// The number of samples from the beginning of the epoch's order that all ranks together have taken.
  std::size_t consumed = 0;

  /// Whether all members are equal.
  bool operator==(const DataPosition&) const = default;
};

/// The samples of one rank. The ranks' samples are disjoint and together are the whole data set (but for `remainder`).
///
/// The order of an epoch is a Fisher-Yates shuffle (Durstenfeld, CACM 7, 1964) drawn from SplitMix64 over seed and
/// epoch, so it is the same for every machine, compiler and world size. Rank r takes positions r, r+W, r+2W, … So the
/// ranks have always taken the beginning of the order, and any other number of ranks can continue after it: each sample
/// of the epoch is used once, as if the world had not changed.
///
/// Can be passed to torch::data::make_data_loader. Copies share one state, because torch's loader keeps a copy and
/// gives no access to it: set_epoch() on your copy reaches the loader's. Each reset() (a loader's begin()) starts the
/// next epoch, beginning with 0, so there is no need to call set_epoch() except to continue from a checkpoint.
///
/// Threads: one at a time (torch's loader draws indices on the training thread).
class LRUN_EXPORT DistributedSampler {
 public:
  /// The type of a batch; torch's loader asks for this name.
  using BatchRequestType = std::vector<std::size_t>;

  /// \param size  samples in the data set.
  /// \throws std::invalid_argument  world_size < 1, rank not in 0 … world_size−1, or options that do not fit together
  ///                                or to the data set.
  DistributedSampler(std::size_t size, int world_size, int rank, DistributedSamplerOptions options = {});

  /// Starts the epoch of set_epoch(), else the one after the last.
  void reset(std::optional<std::size_t> new_size = std::nullopt);

  /// The next indices of the current epoch, at most `batch_size`; empty at its end.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size);

  /// The next reset() starts this epoch.
  void set_epoch(std::size_t epoch);
  /// The next reset() continues here, with any world size; the one after it starts the next epoch. If the epoch is
  /// over, the next reset() starts the next one.
  void set_position(DataPosition position);
  /// Where to continue once each rank has taken `samples` of the current epoch (or all that it has): at its next
  /// sample, or in the next epoch.
  [[nodiscard]] DataPosition position_after(std::size_t samples) const;
  /// Where to continue now. If ranks have different sizes (kUneven) their positions may differ: keep rank 0's.
  [[nodiscard]] DataPosition position() const;
  [[nodiscard]] std::size_t epoch() const;  ///< The epoch that was started last; 0 before the first.

  /// The number of samples of this rank per epoch.
  [[nodiscard]] std::size_t size() const;
  /// This rank's indices of any epoch, in order. Pure.
  [[nodiscard]] std::vector<std::size_t> indices(std::size_t epoch) const;
  /// This rank's indices of the rest of an epoch. Padding comes from the epoch's beginning. Pure.
  [[nodiscard]] std::vector<std::size_t> indices(DataPosition from) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // copies share it: see above
};

}  // namespace lrun
