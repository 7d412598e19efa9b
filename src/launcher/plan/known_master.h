#pragma once

#include <string>

#include "plan/launch_plan.h"

namespace lrun::launcher {

/// MASTER_ADDR and MASTER_PORT of the workers, as far as they are known before the start: with a static rendezvous they
/// are its endpoint.
struct KnownMaster {
  explicit KnownMaster(const LaunchPlan& plan)
      : is_endpoint(plan.rendezvous && plan.rendezvous->workers_use_endpoint && !plan.rendezvous->host.empty()),
        address(is_endpoint ? plan.rendezvous->host : plan.master_addr),
        port(is_endpoint ? plan.rendezvous->port : plan.master_port.value_or(0)) {}

  bool is_endpoint;
  std::string address;  ///< a name, which launchers look up; empty: not known
  int port;             ///< 0: not known
};

}  // namespace lrun::launcher
