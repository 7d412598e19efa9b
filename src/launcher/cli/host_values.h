#pragma once

#include "cli/flags.h"

namespace lrun::launcher::flag_values {

// As flag_values.h, for the options that name hosts.

void hosts(const GivenValue& given, LaunchRequest& request);
/// The file itself is read later: by named_hosts().
void hostfile(const GivenValue& given, LaunchRequest& request);
void include(const GivenValue& given, LaunchRequest& request);
void exclude(const GivenValue& given, LaunchRequest& request);
/// Words as a shell would split them.
void ssh(const GivenValue& given, LaunchRequest& request);
void copy(const GivenValue& given, LaunchRequest& request);

}  // namespace lrun::launcher::flag_values
