#pragma once

#include "cli/flags.h"

namespace lrun::launcher::flag_values {

// What the rows of run_flags.h do with a value; see flag_values.h.

void grace(const GivenValue& given, LaunchRequest& request);
/// A time, or 'none'.
void timeout(const GivenValue& given, LaunchRequest& request);
void start_timeout(const GivenValue& given, LaunchRequest& request);
void hang_timeout(const GivenValue& given, LaunchRequest& request);
void hang_signal(const GivenValue& given, LaunchRequest& request);
void on_hang(const GivenValue& given, LaunchRequest& request);
/// Names are looked at by the plan: what an unknown one is depends on the personality.
void signals_to_handle(const GivenValue& given, LaunchRequest& request);
void max_restarts(const GivenValue& given, LaunchRequest& request);
void restart_backoff(const GivenValue& given, LaunchRequest& request);
void settle(const GivenValue& given, LaunchRequest& request);

}  // namespace lrun::launcher::flag_values
