#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "cluster/user_hosts.h"
#include "inspect/machine_facts.h"
#include "process/tool_run.h"

namespace lrun::launcher {

/// Asks the Python that lrun would start about itself, and logs in over ssh on each of `hosts` that a run would need
/// ssh for: all at the same time, and for some fifteen seconds at most. Fills `python`, `ssh_error`, and the login of
/// each of `facts.peers`, which are the hosts in their order, already tried over TCP; one that does not answer there is
/// not tried again. \param ssh  the words of the user's ssh. \param chosen  that runs Python programs here.
void ask_helpers(const std::vector<Host>& hosts, const std::vector<std::string>& ssh, const PythonChoice& chosen,
                 const Environment& environment, MachineFacts& facts);

/// The facts in Python's answer, or its failure. `choice` is left alone. Pure.
void read_python_outcome(const ToolOutcome& outcome, PythonFacts& python);

/// Whether ssh could log in. Pure.
void read_login_outcome(const ToolOutcome& outcome, PeerFacts& peer);

}  // namespace lrun::launcher
