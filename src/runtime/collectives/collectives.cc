#include <lrun/collectives.h>
#include <lrun/error.h>

#include <utility>

namespace lrun {

// Out of line, so that each class has one vtable and one type_info, in liblrun: exceptions are caught by type.
CollectiveWork::~CollectiveWork() = default;
Collectives::~Collectives() = default;

Error::~Error() = default;
BadEnvironment::~BadEnvironment() = default;
Unsupported::~Unsupported() = default;
CollectiveTimeout::~CollectiveTimeout() = default;
PeerLost::~PeerLost() = default;
CollectiveMismatch::~CollectiveMismatch() = default;
RankMismatch::~RankMismatch() = default;
CheckpointError::~CheckpointError() = default;
WorkersFailed::~WorkersFailed() = default;
ReplicaFailed::~ReplicaFailed() = default;

std::unique_ptr<CollectiveWork> Collectives::all_reduce(at::Tensor tensor, ReduceOp op) {
  return all_reduce(std::move(tensor), op, 0);
}

}  // namespace lrun
