#pragma once

#include <memory>

#include "runtime/collectives/bootstrap/group_options.h"
#include "runtime/collectives/common/posted_collectives.h"
#include "runtime/collectives/hierarchical/host_layout.h"

namespace lrun::detail {

/// Collectives named 'shm+gloo': what is reduced is summed inside each host by shm, then between the hosts' leaders by
/// gloo, and shared inside the hosts again, so that each host sends and receives once. An average divides once, at the
/// end; those of float16 and bfloat16 travel as float32. Sums are taken in the order of ranks inside a host, then of
/// hosts.
///
/// Errors name ranks and operations of the whole group. Ranks that are silent are named by those of their own host, and
/// hosts that are silent by their leader.
/// \throws what make_shm() and make_gloo() throw.
std::unique_ptr<PostedCollectives> make_hierarchical(const GroupOptions& options, const HostLayout& layout);

}  // namespace lrun::detail
