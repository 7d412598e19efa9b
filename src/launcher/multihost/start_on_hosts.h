#pragma once

#include <vector>

#include "base/environment.h"
#include "cli/parse_args.h"
#include "cluster/user_hosts.h"
#include "report/message_sink.h"

namespace lrun::launcher {

/// Carries out the command line on these hosts: shows the plan, runs it here where this is the only host, or starts one
/// launcher a host. \param hosts  not empty.
/// \return the exit code of lrun. Does not return where lrun was interrupted, but dies of the signal.
/// \throws UserError  options contradict each other.
int run_on_hosts(ParsedCommandLine parsed, const std::vector<Host>& hosts, const Environment& environment,
                 MessageSink& sink);

}  // namespace lrun::launcher
