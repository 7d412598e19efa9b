#include "run/job_strength.h"

#include <csignal>

#include "rendezvous/admission.h"

namespace lrun::launcher {

bool may_leave(const RunEnd& end, const JobStrength& job) {
  const bool enough = job.others >= job.plan.min_nodes;
  const bool can_come_back = job.plan.replacement > Duration::zero();
  const bool hands_over = job.has_successors && job.others > 0 && (enough || can_come_back);
  switch (end.kind) {
    case RunEnd::Kind::kGuardDied:
    case RunEnd::Kind::kHeadLost:
      return job.may_drop_out || hands_over;
    case RunEnd::Kind::kStartFailed:
      return job.may_drop_out && enough;
    case RunEnd::Kind::kNotice:
    case RunEnd::Kind::kInterrupted: {
      // A manager may take a single node away, with TERM also where none can come back. Ctrl-C is a person's, who
      // leaves a job that goes on without this node, and ends one that would wait.
      const bool by_person = end.signal_number == SIGINT || end.signal_number == SIGQUIT;
      const bool is_other_signal = end.kind == RunEnd::Kind::kInterrupted && end.signal_number != SIGTERM;
      const bool is_taken = by_person ? can_come_back && enough : can_come_back || (enough && !is_other_signal);
      return is_taken && !end.by_head && job.others > 0 && (job.may_drop_out || hands_over);
    }
    default:
      return false;
  }
}

std::string strength_text(int nodes, const RendezvousPlan& plan) {
  return std::to_string(nodes) + " of " + nodes_text(plan.min_nodes, plan.max_nodes) + " " + unit_of(plan.of_ranks, 2);
}

std::string remaining_text(int left, const RendezvousPlan& plan) {
  const std::string nodes = "; " + strength_text(left, plan);
  if (left >= plan.min_nodes) return nodes + (left == 1 ? " goes on" : " go on");
  const std::string are_left = nodes + (left == 1 ? " is left" : " are left");
  if (plan.replacement == Duration::zero()) return are_left + ", and no other can come";
  return are_left + (left == 1 ? ", which waits" : ", which wait") + " up to " + format_duration(plan.replacement) +
         " for others";
}

}  // namespace lrun::launcher
