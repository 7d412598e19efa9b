// In: the size of a data set, rank, world size and seed. Out: this rank's indices of an epoch, and the position for a
// checkpoint. Implements <lrun/distributed_sampler.h>.
#include <lrun/distributed_sampler.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/data/split_mix.h"

namespace lrun {
namespace {

using detail::SplitMix64;

/// Epochs get unrelated streams: neighbouring states of SplitMix64 would give the same numbers shifted by one.
SplitMix64 generator_of(std::uint64_t seed, std::size_t epoch) {
  return SplitMix64(SplitMix64(SplitMix64(seed).next() + epoch).next());
}

/// Uniform in [0, 1), all 53 bits of it.
double fraction(SplitMix64& generator) { return static_cast<double>(generator.next() >> 11) * 0x1p-53; }

/// Numbers below `size`, each once.
std::vector<std::size_t> shuffled(std::size_t size, SplitMix64 generator) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = size; left > 1; --left) std::swap(order[left - 1], order[generator.below(left)]);
  return order;
}

/// `count` numbers, drawn with replacement where `sums` are the weights' cumulative sums.
std::vector<std::size_t> drawn(const std::vector<double>& sums, std::size_t count, SplitMix64 generator) {
  std::vector<std::size_t> order(count);
  for (auto& sample : order) {
    // Not beyond the last: a fraction close to 1 may be rounded up to the whole sum.
    const auto found = std::upper_bound(sums.begin(), sums.end() - 1, fraction(generator) * sums.back());
    sample = static_cast<std::size_t>(found - sums.begin());
  }
  return order;
}

/// \throws std::invalid_argument  a weight is negative or no number, or all are 0.
std::vector<double> cumulative_sums(const std::vector<double>& weights) {
  for (std::size_t sample = 0; sample < weights.size(); ++sample) {
    if (weights[sample] >= 0 && std::isfinite(weights[sample])) continue;
    throw std::invalid_argument("the weight of sample " + std::to_string(sample) + " is " +
                                std::to_string(weights[sample]));
  }
  std::vector<double> sums(weights.size());
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  if (!sums.empty() && !(sums.back() > 0 && std::isfinite(sums.back()))) {
    throw std::invalid_argument("the weights of the samples add up to " + std::to_string(sums.back()));
  }
  // Samples of weight 0 at the end are not drawn.
  while (sums.size() > 1 && sums[sums.size() - 2] == sums.back()) sums.pop_back();
  return sums;
}

void check(const DistributedSamplerOptions& options, std::size_t size) {
  if (options.order && (options.subset || !options.weights.empty() || options.draws != 0)) {
    throw std::invalid_argument("a sampler has an order of its own, or a subset and weights, not both");
  }
  if (options.draws != 0 && options.weights.empty()) throw std::invalid_argument("samples are drawn by weights only");
  if (options.subset) {
    for (const auto sample : *options.subset) {
      if (sample < size) continue;
      throw std::invalid_argument("sample " + std::to_string(sample) + " of the subset is not in a data set of " +
                                  std::to_string(size));
    }
  }
  const std::size_t samples = options.subset ? options.subset->size() : size;
  if (!options.weights.empty() && options.weights.size() != samples) {
    throw std::invalid_argument(std::to_string(options.weights.size()) + " weights for " + std::to_string(samples) +
                                " samples");
  }
}

}  // namespace

struct DistributedSampler::State {
  std::size_t data_size;
  std::size_t world_size;
  std::size_t rank;
  DistributedSamplerOptions options;
  std::vector<double> sums = {};  // of the weights
  std::size_t epoch = 0;
  DataPosition next = {};
  std::size_t begun_at = 0;               // samples of all ranks that came before
  std::size_t epoch_samples = 0;          // of all ranks
  std::vector<std::size_t> indices = {};  // of the epoch that is being read
  std::size_t position = 0;

  /// Samples of all ranks.
  [[nodiscard]] std::size_t samples_in(std::size_t of_epoch) const {
    if (options.order) return options.order(of_epoch).size();
    if (options.draws != 0) return options.draws;
    return options.subset ? options.subset->size() : data_size;
  }

  [[nodiscard]] std::vector<std::size_t> order_of(std::size_t of_epoch) const {
    if (options.order) return options.order(of_epoch);
    const std::size_t samples = samples_in(of_epoch);
    const SplitMix64 generator = generator_of(options.seed, of_epoch);
    std::vector<std::size_t> order;
    if (!sums.empty()) {
      order = drawn(sums, samples, generator);
    } else if (options.shuffle) {
      order = shuffled(samples, generator);
    } else {
      order.resize(samples);
      std::iota(order.begin(), order.end(), std::size_t{0});
    }
    if (options.subset) {
      for (auto& sample : order) sample = (*options.subset)[sample];
    }
    return order;
  }

  /// This rank's share of `samples`.
  [[nodiscard]] std::size_t share_of(std::size_t samples) const {
    switch (options.remainder) {
      case Remainder::kDrop:
        return samples / world_size;
      case Remainder::kUneven:
        return samples / world_size + (rank < samples % world_size ? 1 : 0);
      case Remainder::kPad:
        break;
    }
    return (samples + world_size - 1) / world_size;
  }
};

DistributedSampler::DistributedSampler(std::size_t size, int world_size, int rank, DistributedSamplerOptions options) {
  if (world_size < 1 || rank < 0 || rank >= world_size) {
    throw std::invalid_argument("a sampler for rank " + std::to_string(rank) + " of " + std::to_string(world_size));
  }
  check(options, size);
  state_ = std::make_shared<State>(
      State{size, static_cast<std::size_t>(world_size), static_cast<std::size_t>(rank), std::move(options)});
  state_->sums = cumulative_sums(state_->options.weights);
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  State& state = *state_;
  if (new_size) {
    check(state.options, *new_size);
    state.data_size = *new_size;
  }
  state.epoch_samples = state.samples_in(state.next.epoch);
  if (state.next.consumed > 0 && state.next.consumed >= state.epoch_samples) {
    state.next = {state.next.epoch + 1, 0};
    state.epoch_samples = state.samples_in(state.next.epoch);
  }
  state.epoch = state.next.epoch;
  state.begun_at = state.next.consumed;
  state.indices = indices(state.next);
  state.position = 0;
  state.next = {state.epoch + 1, 0};
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  State& state = *state_;
  const std::size_t count = std::min(batch_size, state.indices.size() - state.position);
  if (count == 0) return std::nullopt;
  const auto begin = state.indices.begin() + static_cast<std::ptrdiff_t>(state.position);
  state.position += count;
  return std::vector<std::size_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::set_epoch(std::size_t epoch) { state_->next = {epoch, 0}; }

void DistributedSampler::set_position(DataPosition position) { state_->next = position; }

DataPosition DistributedSampler::position_after(std::size_t samples) const {
  const State& state = *state_;
  const std::size_t consumed = state.begun_at + samples * state.world_size;
  const bool over = samples >= state.indices.size() || consumed >= state.epoch_samples;
  // Before the first epoch nothing was taken.
  if (state.indices.empty() && state.epoch_samples == 0) return state.next;
  return over ? DataPosition{state.epoch + 1, 0} : DataPosition{state.epoch, consumed};
}

DataPosition DistributedSampler::position() const { return position_after(state_->position); }

std::size_t DistributedSampler::epoch() const { return state_->epoch; }

std::size_t DistributedSampler::size() const { return state_->share_of(state_->samples_in(state_->epoch)); }

std::vector<std::size_t> DistributedSampler::indices(std::size_t epoch) const { return indices({epoch, 0}); }

std::vector<std::size_t> DistributedSampler::indices(DataPosition from) const {
  const State& state = *state_;
  const auto order = state.order_of(from.epoch);
  const std::size_t begin = std::min(from.consumed, order.size());
  std::vector<std::size_t> mine(state.share_of(order.size() - begin));
  for (std::size_t turn = 0; turn < mine.size(); ++turn) {
    mine[turn] = order[(begin + turn * state.world_size + state.rank) % order.size()];  // past the end: padding
  }
  return mine;
}

}  // namespace lrun
