#pragma once

#include <string>

#include "plan/rendezvous_plan.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// Tells whether a job can do without this node, which has a reason to leave it. A value.
struct JobStrength {
  const RendezvousPlan& plan;
  int others = 0;               ///< nodes of this round that are left beside this one
  bool may_drop_out = false;    ///< JobMember::may_drop_out()
  bool has_successors = false;  ///< JobMember::has_successors()
};

/// True where the job can go on without this node after `end`: it was interrupted, lrun was killed there, the head (the
/// lrun that a person typed) was lost, or the program could not be started. Pure.
bool may_leave(const RunEnd& end, const JobStrength& job);

/// '3 of 2:4 nodes'.
std::string strength_text(int nodes, const RendezvousPlan& plan);

/// The consequence of the loss of a node: '; 3 of 2:4 nodes go on'. \param left  nodes
std::string remaining_text(int left, const RendezvousPlan& plan);

}  // namespace lrun::launcher
