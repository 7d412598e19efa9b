#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// The addresses that a name means here, numeric; empty when it means nothing. `timed_out` says that nobody answered
/// within `limit`. Asked in a process of its own: a name service can hang. One thread.
std::vector<std::string> resolve(const std::string& name, Duration limit, bool& timed_out);

/// Tries to reach every host over TCP, all at the same time, for at most `limit` in all. Nothing needs to listen there:
/// a refused connection comes from a living host through an open way. One thread.
std::vector<PeerFacts> meet_hosts(const std::vector<std::string>& hosts, Duration limit);

}  // namespace lrun::launcher
