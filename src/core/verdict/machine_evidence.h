#pragma once

#include <string>

#include "process/memory_watch.h"
#include "verdict/explain.h"

namespace lrun::inline core {

/// Adds to `facts` what the machine knows about a signal that it may have caused itself: a kill for lack of memory, a
/// full /dev/shm. Nothing of a worker that ended because lrun stopped it.
/// \param memory  a kill that it reports is taken.
void add_machine_evidence(const FailureRecord& record, MemoryWatch& memory, EndFacts& facts);

/// Adds `folder`, where the worker writes its output by itself, if nothing can be written there any more: what it said
/// of that is then lost. Only of an exit that lrun did not cause.
void add_full_folder(const FailureRecord& record, const std::string& folder, EndFacts& facts);

}  // namespace lrun::inline core
