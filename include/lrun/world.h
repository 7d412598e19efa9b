#pragma once

#include <lrun/export.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lrun {

/// The launcher whose variables a World was read from.
enum class WorldSource { kAlone, kLrun, kTorchrun, kSlurm, kOpenMpi, kPmi };

/// The place of this process among the workers of a run: a value read from the worker environment. Reading it joins
/// nothing.
///
/// Sources, in this order:
///   1. RANK and WORLD_SIZE, as set by lrun, torchrun and every launcher for torch's `env://`;
///   2. WORLD_SIZE and LOCAL_RANK without RANK, on nodes other than 0 with NODE_RANK and LOCAL_WORLD_SIZE: the rank is
///      NODE_RANK · LOCAL_WORLD_SIZE + LOCAL_RANK;
///   3. one of several tasks of Open MPI (OMPI_COMM_WORLD_RANK, …), of MPICH's or Intel's mpiexec (PMI_RANK,
///      MPI_LOCALRANKID, …) or of a Slurm step (SLURM_STEP_ID, SLURM_PROCID, …). The tasks meet at MASTER_ADDR and
///      MASTER_PORT. Without these the host is the step's first one, or this host if it runs all of mpirun's tasks, and
///      the port follows from the job. On several hosts mpirun needs MASTER_ADDR, and MPICH's and Intel's mpiexec need
///      MASTER_PORT, too;
///   4. none of these: a single rank.
struct LRUN_EXPORT World {
  /// Values by the names of their variables.
  using Variables = std::map<std::string, std::string, std::less<>>;

  int rank = 0;              ///< 0 … world_size−1.
  int world_size = 1;        ///< All ranks of all nodes.
  int local_rank = 0;        ///< 0 … local_world_size−1 (always 0 under torchrun --virtual-local-rank).
  int local_world_size = 1;  ///< Ranks on this node.
  int node_rank = 0;         ///< GROUP_RANK, else NODE_RANK.
  int nodes = 1;             ///< GROUP_WORLD_SIZE, else world_size / local_world_size, rounded up.

  std::string master_address;     ///< Host of the workers' store; empty when unknown or alone.
  std::uint16_t master_port = 0;  ///< Port of the workers' store; 0 when unknown or alone.
  /// The launcher serves the store (TORCHELASTIC_USE_AGENT_STORE=True); else rank 0 does.
  bool uses_agent_store = false;

  std::string run_id;     ///< LRUN_RUN_ID, else TORCHELASTIC_RUN_ID, 'slurm-JOB.STEP' or 'mpi-JOB'; empty: unknown.
  int restart_count = 0;  ///< 0 in the first attempt.
  int max_restarts = 0;   ///< How often the launcher may start all workers again.

  std::string strategy;               ///< LRUN_STRATEGY; empty when not given.
  std::string backend;                ///< LRUN_PROCESS_GROUP_BACKEND; empty when not given.
  std::vector<std::string> devices;   ///< LRUN_DEVICES, of this process: 'cpu', 'cuda:1'; empty when not given.
  std::optional<std::uint64_t> seed;  ///< LRUN_SEED; empty when not given.
  bool resume = false;                ///< LRUN_RESUME is neither empty nor '0': continue from a checkpoint.
  std::string resume_path;            ///< LRUN_RESUME as a path; empty for '1': the program's own.

  WorldSource source = WorldSource::kAlone;  ///< Where the variables come from.

  /// Reads the environment of this process. Tasks of MPICH or Intel MPI that all run on this host identify their job by
  /// the process at the other end of PMI_FD.
  /// \throws lrun::BadEnvironment  a variable is malformed or contradicts another (RANK without WORLD_SIZE, RANK ≥
  ///                               WORLD_SIZE, not a number, …); the text names it.
  static World from_environment();

  /// Reads any set of variables.
  static World from_variables(const Variables& variables);

  /// Whether all members are equal.
  bool operator==(const World&) const = default;
};

}  // namespace lrun
