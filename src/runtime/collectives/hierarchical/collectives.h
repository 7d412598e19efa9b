#pragma once

#include <memory>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/common/posted_collectives.h"
#include "runtime/collectives/hierarchical/host_layout.h"

namespace lrun::detail {

/// Collectives named 'shm+gloo': shm sums inside each host, gloo between the hosts' leaders, and the result is shared
/// inside the hosts again, so that each host sends and receives once. An average divides once, at the end; averages of
/// float16 and bfloat16 travel as float32. Sums are taken in the order of ranks inside a host, then of hosts.
///
/// Errors name ranks and operations of the whole group. A timeout names the silent ranks of the own host, and silent
/// hosts by their leaders.
/// \throws what make_shm() and make_gloo() throw.
std::unique_ptr<PostedCollectives> make_hierarchical(const GroupOptions& options, const HostLayout& layout);

}  // namespace lrun::detail
