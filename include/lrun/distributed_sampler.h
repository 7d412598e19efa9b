#pragma once

#include <lrun/export.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace lrun {

/// What happens to the samples that do not divide by the world size.
enum class Remainder {
  kPad,     ///< Every rank gets ⌈N/W⌉: the first samples of the epoch's order are repeated (torch's default).
  kDrop,    ///< Every rank gets ⌊N/W⌋: the last samples of the epoch's order are left out (torch's drop_last).
  kUneven,  ///< Every sample once: the first N mod W ranks get one more. For evaluation without collectives per batch.
};

struct DistributedSamplerOptions {
  bool shuffle = true;     ///< False: the data set's own order.
  std::uint64_t seed = 0;  ///< Must be the same on all ranks.
  Remainder remainder = Remainder::kPad;
  /// Only these samples of the data set, for example those of training. Default: all.
  std::optional<std::vector<std::size_t>> subset = std::nullopt;
  /// One weight a sample (of `subset`, when there is one): each epoch then draws samples with replacement, with
  /// probabilities in proportion to the weights; `shuffle` says nothing. Empty: every sample once.
  std::vector<double> weights = {};
  /// Samples that all ranks together draw in an epoch by `weights`. 0: as many as there are.
  std::size_t draws = 0;
  /// Your own sampler: the samples of an epoch in their order. It must give the same on all ranks, and for an epoch
  /// always the same. Goes with neither of the three above.
  std::function<std::vector<std::size_t>(std::size_t epoch)> order = nullptr;
};

/// How far a training has read its data: what a checkpoint keeps of it.
struct DataPosition {
  std::size_t epoch = 0;
  /// Samples of the epoch's order that all ranks together have taken: those before this place.
  std::size_t consumed = 0;

  bool operator==(const DataPosition&) const = default;
};

/// The samples of one rank: disjoint from those of the other ranks, and together the whole data set (but for
/// `remainder`).
///
/// The order of an epoch is a Fisher-Yates shuffle (Durstenfeld, CACM 7, 1964) drawn from SplitMix64 over seed and
/// epoch, so it is the same on every machine, compiler and world size; rank r takes positions r, r+W, r+2W, … So the
/// ranks have always taken the beginning of the order, and any other number of ranks can go on behind it: each sample
/// of the epoch is used once, as if the world had not changed.
///
/// Fits torch::data::make_data_loader as it is. Copies share one state, because torch's loader keeps a copy and gives
/// no access to it: set_epoch() on yours reaches the loader's. Each reset() (a loader's begin()) starts the next epoch,
/// beginning with 0, so that no call to set_epoch() can be forgotten; call it only to go on from a checkpoint.
///
/// Threads: one at a time (torch's loader draws indices on the training thread).
class LRUN_EXPORT DistributedSampler {
 public:
  using BatchRequestType = std::vector<std::size_t>;

  /// \param size  samples in the data set.
  /// \throws std::invalid_argument  world_size < 1, or rank not in 0 … world_size−1; a subset, weights or own order
  ///                                that do not fit.
  DistributedSampler(std::size_t size, int world_size, int rank, DistributedSamplerOptions options = {});

  /// Starts an epoch: the one of set_epoch(), else the one after the last.
  void reset(std::optional<std::size_t> new_size = std::nullopt);

  /// At most `batch_size` indices of the epoch that is being read; empty at its end.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size);

  /// The next reset() starts this epoch.
  void set_epoch(std::size_t epoch);
  /// The next reset() goes on here, with any world size; the one after it starts the next epoch. Where the epoch is
  /// over, the next one is started.
  void set_position(DataPosition position);
  /// Where to go on once each rank has taken `samples` of the epoch that was started last (as many as this one, or all
  /// it has): its next sample, or the next epoch.
  [[nodiscard]] DataPosition position_after(std::size_t samples) const;
  /// Where to go on now. Ranks whose sizes differ (kUneven) may differ in it: keep rank 0's.
  [[nodiscard]] DataPosition position() const;
  [[nodiscard]] std::size_t epoch() const;  ///< The epoch that was started last; 0 before the first.

  /// Samples of this rank in an epoch.
  [[nodiscard]] std::size_t size() const;
  /// This rank's indices of any epoch, in order: pure.
  [[nodiscard]] std::vector<std::size_t> indices(std::size_t epoch) const;
  /// This rank's indices of the rest of an epoch: pure. What pads them comes from the epoch's beginning.
  [[nodiscard]] std::vector<std::size_t> indices(DataPosition from) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // copies share it: see above
};

}  // namespace lrun
