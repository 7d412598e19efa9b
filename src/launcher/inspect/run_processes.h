#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "store/client_shares.h"

namespace lrun::launcher {

/// Everything below this process: a run's workers, and what they have started. Looks through /proc, which takes
/// milliseconds where there are hundreds of processes, and so for a question at most a tenth of the time. One thread.
class RunProcesses {
 public:
  /// Whether one of them is of this user: a worker may change its user, as by sudo or setpriv. Each user is a question
  /// of its own, so that one who asks all the time makes nobody else wait; all together have a quarter of the time.
  bool has_user(uid_t user);

  /// The sockets that they hold. \return empty: not now, it was looked a moment ago.
  std::optional<RunSockets> sockets();

 private:
  std::set<uid_t> users_;              ///< as they were when it was looked last
  std::map<uid_t, SteadyTime> again_;  ///< when it may be looked again for this user
  SteadyTime any_again_{};             ///< for anybody; before now while there is time left
  SteadyTime sockets_again_{};
};

}  // namespace lrun::launcher
