#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "store/client_shares.h"

namespace lrun::launcher {

/// All processes below this one: a run's workers, and their children. A look through /proc takes milliseconds where
/// there are hundreds of processes; each question may take at most a tenth of the time. One thread.
class RunProcesses {
 public:
  /// Whether one of them belongs to this user: a worker may change its user, by sudo or setpriv. Each user is a
  /// question of its own, so that a user who asks all the time makes no other user wait. All questions together may
  /// take a quarter of the time.
  bool has_user(uid_t user);

  /// The sockets that they hold. \return empty: the last look was a moment ago.
  std::optional<RunSockets> sockets();

 private:
  std::set<uid_t> users_;              ///< found by the last look
  std::map<uid_t, SteadyTime> again_;  ///< when this user may cause a look again
  SteadyTime any_again_{};             ///< when any user may; before now while there is time left
  SteadyTime sockets_again_{};
};

}  // namespace lrun::launcher
