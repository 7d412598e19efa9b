#pragma once

#include <lrun/export.h>

#include <cstddef>
#include <cstdint>
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
};

/// The samples of one rank: disjoint from those of the other ranks, and together the whole data set (but for
/// `remainder`).
///
/// The order of an epoch is a Fisher-Yates shuffle (Durstenfeld, CACM 7, 1964) drawn from SplitMix64 over seed and
/// epoch, so it is the same on every machine, compiler and world size; rank r takes positions r, r+W, r+2W, …
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
  /// \throws std::invalid_argument  world_size < 1, or rank not in 0 … world_size−1.
  DistributedSampler(std::size_t size, int world_size, int rank, DistributedSamplerOptions options = {});

  /// Starts an epoch: the one of set_epoch(), else the one after the last.
  void reset(std::optional<std::size_t> new_size = std::nullopt);

  /// At most `batch_size` indices of the epoch that is being read; empty at its end.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size);

  /// The next reset() starts this epoch.
  void set_epoch(std::size_t epoch);
  [[nodiscard]] std::size_t epoch() const;  ///< The epoch that was started last; 0 before the first.

  /// Samples of this rank in an epoch.
  [[nodiscard]] std::size_t size() const;
  /// This rank's indices of any epoch, in order: pure.
  [[nodiscard]] std::vector<std::size_t> indices(std::size_t epoch) const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // copies share it: see above
};

}  // namespace lrun
