#include "run/clean_up.h"

#include <csignal>
#include <vector>

#include "process/descendants.h"

namespace lrun::launcher {

bool end_what_is_left(const Guard& guard, Duration limit, MessageSink& sink, pid_t spared) {
  const std::vector<pid_t> survivors = end_all_descendants(limit, guard.cgroup(), spared);
  if (survivors.empty()) return true;
  sink.warn(survivors_text(survivors));
  return are_dead(survivors);
}

void kill_children(const Guard& guard) {
  guard.cgroup().kill();
  for (const pid_t child : direct_children()) ::kill(child, SIGKILL);
}

}  // namespace lrun::launcher
