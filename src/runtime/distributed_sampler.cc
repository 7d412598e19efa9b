#include <lrun/distributed_sampler.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace lrun {
namespace {

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. Its own, because
/// std::shuffle and the distributions of <random> differ between standard libraries.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}

  std::uint64_t next() {
    std::uint64_t bits = state_ += 0x9E3779B97F4A7C15U;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
    return bits ^ (bits >> 31);
  }

  /// Uniform in 0 … bound−1: values that would favour the small ones are drawn again.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t biased = (0 - bound) % bound;
    std::uint64_t bits = next();
    while (bits < biased) bits = next();
    return bits % bound;
  }

 private:
  std::uint64_t state_;
};

/// Epochs get unrelated streams: neighbouring states of SplitMix64 would give the same numbers shifted by one.
SplitMix64 generator_of(std::uint64_t seed, std::size_t epoch) {
  return SplitMix64(SplitMix64(SplitMix64(seed).next() + epoch).next());
}

std::vector<std::size_t> epoch_order(std::size_t size, bool shuffle, std::uint64_t seed, std::size_t epoch) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!shuffle) return order;
  SplitMix64 generator = generator_of(seed, epoch);
  for (std::size_t left = size; left > 1; --left) std::swap(order[left - 1], order[generator.below(left)]);
  return order;
}

}  // namespace

struct DistributedSampler::State {
  std::size_t size;
  std::size_t world_size;
  std::size_t rank;
  DistributedSamplerOptions options;
  std::size_t epoch = 0;
  std::size_t next_epoch = 0;
  std::vector<std::size_t> indices;  // of the epoch that is being read
  std::size_t position = 0;

  [[nodiscard]] std::size_t samples_of_rank() const {
    switch (options.remainder) {
      case Remainder::kDrop:
        return size / world_size;
      case Remainder::kUneven:
        return size / world_size + (rank < size % world_size ? 1 : 0);
      case Remainder::kPad:
        break;
    }
    return (size + world_size - 1) / world_size;
  }
};

DistributedSampler::DistributedSampler(std::size_t size, int world_size, int rank, DistributedSamplerOptions options) {
  if (world_size < 1 || rank < 0 || rank >= world_size) {
    throw std::invalid_argument("a sampler for rank " + std::to_string(rank) + " of " + std::to_string(world_size));
  }
  state_ = std::make_shared<State>(
      State{size, static_cast<std::size_t>(world_size), static_cast<std::size_t>(rank), options, 0, 0, {}, 0});
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  State& state = *state_;
  if (new_size) state.size = *new_size;
  state.epoch = state.next_epoch++;
  state.indices = indices(state.epoch);
  state.position = 0;
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  State& state = *state_;
  const std::size_t count = std::min(batch_size, state.indices.size() - state.position);
  if (count == 0) return std::nullopt;
  const auto begin = state.indices.begin() + static_cast<std::ptrdiff_t>(state.position);
  state.position += count;
  return std::vector<std::size_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::set_epoch(std::size_t epoch) { state_->next_epoch = epoch; }

std::size_t DistributedSampler::epoch() const { return state_->epoch; }

std::size_t DistributedSampler::size() const { return state_->samples_of_rank(); }

std::vector<std::size_t> DistributedSampler::indices(std::size_t epoch) const {
  const State& state = *state_;
  const auto order = epoch_order(state.size, state.options.shuffle, state.options.seed, epoch);
  std::vector<std::size_t> mine(state.samples_of_rank());
  for (std::size_t turn = 0; turn < mine.size(); ++turn) {
    mine[turn] = order[(turn * state.world_size + state.rank) % state.size];  // past the end: padding
  }
  return mine;
}

}  // namespace lrun
