#pragma once

#include "process/memory_watch.h"
#include "verdict/explain.h"

namespace lrun {

/// Adds to `facts` what the machine knows about a signal that it may have caused itself: a kill for lack of memory, a
/// full /dev/shm. Nothing of a worker that ended because lrun stopped it.
/// \param memory  a kill that it reports is taken.
void add_machine_evidence(const FailureRecord& record, MemoryWatch& memory, EndFacts& facts);

}  // namespace lrun
