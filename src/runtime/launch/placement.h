#pragma once

#include <lrun/launch.h>
#include <lrun/world.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lrun::detail {

/// How a launch runs its function.
enum class LaunchMethod { kInPlace, kSpawn, kFork };

/// The places of a launch's ranks in their world: a value, decided without starting anything.
struct Placement {
  LaunchMethod method = LaunchMethod::kInPlace;
  std::vector<std::string> devices;  ///< of this node: a rank each
  int node_rank = 0;
  int nodes = 1;
  std::string master_address = "127.0.0.1";
  std::uint16_t master_port = 0;  ///< 0: to be chosen here
  bool uses_agent_store = false;  ///< a launcher serves the store
  std::string run_id;             ///< of the launcher; empty: there is none
  int restart_count = 0;
  int max_restarts = 0;
  std::string backend;  ///< empty: not said
  std::optional<std::uint64_t> seed;
  int threads = 0;  ///< OMP_NUM_THREADS of a rank; 0: as the environment has it

  [[nodiscard]] int local_world_size() const { return static_cast<int>(devices.size()); }
  [[nodiscard]] int world_size() const { return nodes * local_world_size(); }
  [[nodiscard]] int rank(int local_rank) const { return node_rank * local_world_size() + local_rank; }

  bool operator==(const Placement&) const = default;
};

/// Decides from the program's options, its environment, whether it is an interactive interpreter, and how many CPUs it
/// may use. Pure.
/// \throws lrun::Unsupported, lrun::BadEnvironment, std::invalid_argument  as launch().
Placement place_ranks(const LaunchOptions& options, const World::Variables& variables, bool interactive, int cpus);

/// The variables that a rank gets in addition to this process's, as lrun sets them; `port` is that of the store.
std::vector<std::pair<std::string, std::string>> rank_variables(const Placement& placement, int local_rank,
                                                                std::uint16_t port);

/// Variables that this process may have and its ranks must not: the error file and the progress are its own, and
/// another launcher's variables of a task describe the whole node.
inline constexpr std::array kOfParentOnly{std::string_view("TORCHELASTIC_ERROR_FILE"),
                                          std::string_view("LRUN_PROGRESS_FD"), std::string_view("SLURM_PROCID"),
                                          std::string_view("SLURM_LOCALID"), std::string_view("OMPI_COMM_WORLD_RANK")};

}  // namespace lrun::detail
