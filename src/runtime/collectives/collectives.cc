#include <lrun/collectives.h>
#include <lrun/error.h>

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

}  // namespace lrun
