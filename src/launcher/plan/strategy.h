#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// How the work of a run is split over its devices: --strategy.
enum class Strategy {
  kSingle,  ///< one device; chosen where nothing else was asked for
  kDdp,
  kDp,
  kDdp2,
  kDdpSharded,
  kDdpSpawn,
  kDdpFork,
  kDdpNotebook,
  kDeepspeed,
  kHorovod,
  kTpu,
};

/// The facts by which the launcher treats strategies differently. It knows nothing of a strategy's work inside of a
/// program.
struct StrategyFacts {
  /// The processes that the launcher starts.
  enum class Processes { kOnePerDevice, kOnePerNode, kOneInAll };

  std::string_view name;
  Processes processes = Processes::kOnePerDevice;
  bool starts_ranks_from_code = false;  ///< each process starts the ranks of its node by lrun::launch()
  /// How a program without liblrun would train: 'on one device'. Empty where no liblrun is needed.
  std::string_view without_liblrun = {};
  std::string_view python_instead = {};  ///< the means of a Python program for the same purpose

  /// liblrun does the work, inside of the program. Any other program would have devices that it does not know of, or an
  /// optimizer that is not sharded.
  [[nodiscard]] bool needs_liblrun() const { return !without_liblrun.empty(); }
};

const StrategyFacts& facts_of(Strategy strategy);

/// 'ddp_sharded'
std::string text_of(Strategy strategy);

/// The strategy of this name, in lower case. Empty: there is none that a user could ask for.
std::optional<Strategy> find_strategy(std::string_view name);

}  // namespace lrun::launcher
