#pragma once

#include <string>

#include "process/memory_watch.h"
#include "verdict/explain.h"

namespace lrun::inline core {

/// Adds to `facts` what the machine shows about a signal that the kernel may have sent: a kill for lack of memory, a
/// full /dev/shm. Adds nothing for a worker that lrun stopped.
/// \param memory  a kill that it reports is used up.
void add_machine_evidence(const FailureRecord& record, MemoryWatch& memory, EndFacts& facts);

/// Adds `folder`, which the worker writes its output to, when it is full: the worker's own message about that was lost.
/// Only for an exit that lrun did not cause.
void add_full_folder(const FailureRecord& record, const std::string& folder, EndFacts& facts);

}  // namespace lrun::inline core
