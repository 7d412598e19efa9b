#pragma once

#include "base/environment.h"

namespace lrun {

/// Refuses to be one of several tasks of mpirun: nothing tells them where to meet, so each lrun would be a run of its
/// own, on one host with the same devices. Known by the variables of Open MPI and of MPICH's hydra, which many have,
/// and of PMI where Slurm does not say more. A single task is a launch on this host, and so is a worker of another
/// launcher. \throws UserError  with the line to type instead.
void refuse_mpi_tasks(const Environment& environment);

}  // namespace lrun
