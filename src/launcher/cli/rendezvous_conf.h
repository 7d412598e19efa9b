#pragma once

#include "cli/flags.h"

namespace lrun::launcher {

/// Reads the value of --rdzv-conf, 'KEY=VALUE,KEY=VALUE', into the request. A key that torchrun has and lrun has no use
/// for is taken in silence; an unknown one adds a warning.
/// \throws UserError  it is no such list, or the value of a key is wrong.
void read_rendezvous_conf(const GivenValue& given, RendezvousRequest& request);

}  // namespace lrun::launcher
