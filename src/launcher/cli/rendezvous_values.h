#pragma once

#include "cli/flags.h"

namespace lrun::launcher::flag_values {

// As flag_values.h, for torchrun's options about how launchers find each other. Whether a host is this one is looked at
// by the plan.

void rdzv_backend(const GivenValue& given, LaunchRequest& request);
void rdzv_endpoint(const GivenValue& given, LaunchRequest& request);
/// 'key=value,key=value'.
void rdzv_conf(const GivenValue& given, LaunchRequest& request);
void node_rank(const GivenValue& given, LaunchRequest& request);
void master_addr(const GivenValue& given, LaunchRequest& request);
void spares(const GivenValue& given, LaunchRequest& request);
void local_addr(const GivenValue& given, LaunchRequest& request);

}  // namespace lrun::launcher::flag_values
