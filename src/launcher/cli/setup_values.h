#pragma once

#include "cli/flags.h"

namespace lrun::launcher::flag_values {

// As flag_values.h, for what is done in every worker before its program begins.

void chdir(const GivenValue& given, LaunchRequest& request);
void env(const GivenValue& given, LaunchRequest& request);
void unset(const GivenValue& given, LaunchRequest& request);
void rlimit(const GivenValue& given, LaunchRequest& request);
void core(const GivenValue& given, LaunchRequest& request);
void debug_rank(const GivenValue& given, LaunchRequest& request);
void wrap(const GivenValue& given, LaunchRequest& request);

}  // namespace lrun::launcher::flag_values
