#pragma once

#include <string>
#include <vector>

#include "base/duration.h"
#include "inspect/machine_facts.h"

namespace lrun::launcher {

/// The addresses that a name resolves to, numeric. `timed_out`: the name service did not answer within `limit`. Asked
/// in a child process, because a name service can hang. One thread.
std::vector<std::string> resolve(const std::string& name, Duration limit, bool& timed_out);

/// Tries to reach every host over TCP, all at the same time, for at most `limit` in all. No program needs to listen
/// there: a refused connection proves that the host is alive and the way to it open. One thread.
std::vector<PeerFacts> reach_hosts(const std::vector<std::string>& hosts, Duration limit);

}  // namespace lrun::launcher
