#include "runtime/session/banner.h"

#include <fmt/format.h>
#include <lrun/batch.h>

#include <algorithm>
#include <cmath>

#include "base/nearest.h"

namespace lrun::detail {
namespace {

bool are_one(const std::vector<double>& rates) {
  return std::ranges::all_of(rates, [&](double rate) { return rate == rates.front(); });
}

std::string joined(const std::vector<double>& rates) {
  std::vector<std::string> words;
  for (const double rate : rates) words.push_back(fmt::format("{:g}", rate));
  return join_words(words, ", ");
}

std::string rates_text(const std::vector<double>& rates) {
  if (are_one(rates)) return fmt::format("learning rate {:g}", rates.front());
  return "learning rates " + joined(rates);
}

std::string becomes(const std::vector<double>& before, const std::vector<double>& after) {
  if (are_one(before)) return fmt::format("becomes {:g}", after.front());
  return "become " + joined(after);
}

}  // namespace

std::string describe_session(const World& world, std::string_view strategy, std::string_view backend,
                             const std::vector<std::string>& devices, std::uint64_t seed) {
  const std::string over = world.world_size == 1 ? "" : fmt::format(" over {}", backend);
  return fmt::format("lrun: {}{}, {} {} on {} {}, {} {}, seed {}", strategy, over, world.world_size,
                     world.world_size == 1 ? "rank" : "ranks", world.nodes, world.nodes == 1 ? "node" : "nodes",
                     devices.size() == 1 ? "device" : "devices", join_words(devices, ", "), seed);
}

std::string describe_batch_size(std::int64_t loader_batch, int world_size, std::size_t devices, bool scales_rates) {
  const std::string split = devices == 1 ? ""
                                         : fmt::format(", at most {} on each of {} devices",
                                                       split_evenly(loader_batch, devices).front(), devices);
  if (world_size == 1) {
    return fmt::format("lrun: effective batch size {}{}; a learning rate tuned for batch {} stays as it is",
                       loader_batch, split, loader_batch);
  }
  const std::string batch = fmt::format("lrun: effective batch size {} ({} samples x {} ranks{})",
                                        loader_batch * world_size, loader_batch, world_size, split);
  if (scales_rates) {
    return fmt::format("{}; session.optimizer() scales a learning rate tuned for batch {} by {}", batch, loader_batch,
                       world_size);
  }
  return fmt::format(
      "{}; scale a learning rate tuned for batch {} by {} (linear, with warm-up) or {:.3g} (square root, for Adam)",
      batch, loader_batch, world_size, std::sqrt(world_size));
}

std::string describe_learning_rates(const std::vector<double>& before, const std::vector<double>& after, int ranks) {
  return fmt::format(
      "lrun: {} {} (strategy horovod: x {} ranks, the linear rule; SessionOptions::scale_learning_rate = false leaves "
      "it)",
      rates_text(before), becomes(before, after), ranks);
}

std::string describe_loaded_rates(const std::vector<double>& before, const std::vector<double>& after, int ranks_before,
                                  int ranks) {
  return fmt::format("lrun: {} of the checkpoint, for {} {}, {} for {}", rates_text(before), ranks_before,
                     ranks_before == 1 ? "rank" : "ranks", becomes(before, after), ranks);
}

}  // namespace lrun::detail
