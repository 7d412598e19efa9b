#pragma once

#include "cli/flags.h"

namespace lrun::launcher::flag_values {

// As flag_values.h, for the group 'Output'.

void output(const GivenValue& given, LaunchRequest& request);
void timestamps(const GivenValue& given, LaunchRequest& request);
void pty(const GivenValue& given, LaunchRequest& request);
void standard_input(const GivenValue& given, LaunchRequest& request);
void log_max_bytes(const GivenValue& given, LaunchRequest& request);
void log_dir(const GivenValue& given, LaunchRequest& request);
void redirects(const GivenValue& given, LaunchRequest& request);
void tee(const GivenValue& given, LaunchRequest& request);
void local_ranks_filter(const GivenValue& given, LaunchRequest& request);
void duplicate_stdout_filters(const GivenValue& given, LaunchRequest& request);
void duplicate_stderr_filters(const GivenValue& given, LaunchRequest& request);
void log_line_prefix_template(const GivenValue& given, LaunchRequest& request);

}  // namespace lrun::launcher::flag_values
