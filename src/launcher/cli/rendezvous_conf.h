#pragma once

#include "cli/flags.h"

namespace lrun::launcher {

/// Reads the value of --rdzv-conf, 'KEY=VALUE,KEY=VALUE', into the request. A key that only
/// torchrun needs is accepted without effect. An unknown key adds a warning.
/// \throws UserError  the value is not such a list, or the value of a key is wrong.
void read_rendezvous_conf(const GivenValue& given, RendezvousRequest& request);

}  // namespace lrun::launcher
