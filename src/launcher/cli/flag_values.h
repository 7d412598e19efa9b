#pragma once

#include "cli/flags.h"

namespace lrun::launcher::flag_values {

// What each row of the flag table does with a value: check it alone, put it into the request. Conflicts between
// values are the plan's. All \throw UserError with what is wrong, what is allowed and the nearest right spelling.

void devices(const GivenValue& given, LaunchRequest& request);
void nproc_per_node(const GivenValue& given, LaunchRequest& request);
void num_nodes(const GivenValue& given, LaunchRequest& request);
void accelerator(const GivenValue& given, LaunchRequest& request);
void isolate_gpus(const GivenValue& given, LaunchRequest& request);
void share_gpus(const GivenValue& given, LaunchRequest& request);
void bind(const GivenValue& given, LaunchRequest& request);
void numa_binding(const GivenValue& given, LaunchRequest& request);
void strategy(const GivenValue& given, LaunchRequest& request);
void process_group_backend(const GivenValue& given, LaunchRequest& request);
void seed(const GivenValue& given, LaunchRequest& request);
void master_port(const GivenValue& given, LaunchRequest& request);
void module(const GivenValue& given, LaunchRequest& request);
void run_path(const GivenValue& given, LaunchRequest& request);
void no_python(const GivenValue& given, LaunchRequest& request);
void liblrun(const GivenValue& given, LaunchRequest& request);
void nested(const GivenValue& given, LaunchRequest& request);
void no_local_rank(const GivenValue& given, LaunchRequest& request);
void use_env(const GivenValue& given, LaunchRequest& request);
void compat(const GivenValue& given, LaunchRequest& request);
void role(const GivenValue& given, LaunchRequest& request);
void rdzv_id(const GivenValue& given, LaunchRequest& request);
/// On one machine it only names the run.
void standalone(const GivenValue& given, LaunchRequest& request);
void dry_run(const GivenValue& given, LaunchRequest& request);
void verbose(const GivenValue& given, LaunchRequest& request);

/// For flags of a later version: takes a neutral value in silence, refuses any other.
void not_in_this_version(const GivenValue& given, LaunchRequest& request);
/// The same for one of the row's choices.
void choice_not_in_this_version(const GivenValue& given, LaunchRequest& request);
/// A positive number of seconds. lrun never polls: of torchrun's polling it keeps, up to a second, the time that a
/// failing worker leaves the others to start.
void monitor_interval(const GivenValue& given, LaunchRequest& request);

/// A switch's value: '1' when given as a flag; from a variable '0' or 'false', '1' or 'true', and empty, which is true.
bool switch_value(const GivenValue& given);

}  // namespace lrun::launcher::flag_values
