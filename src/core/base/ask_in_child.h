#pragma once

#include <functional>
#include <string>

#include "base/duration.h"

namespace lrun::inline core {

/// What came of a question that a child process was to answer.
struct ChildAnswer {
  enum class End {
    kAnswered,    ///< `text` is whole
    kCrashed,     ///< the child ended without an answer
    kTimedOut,    ///< it was killed at the deadline
    kNotStarted,  ///< no process or pipe could be made
  };
  End end = End::kNotStarted;
  std::string text;       ///< of kAnswered
  int signal_number = 0;  ///< of kCrashed: what ended the child; 0 when it ended itself
  int error_number = 0;   ///< of kNotStarted

  bool operator==(const ChildAnswer&) const = default;
};

/// Answers `question` in a forked child, so that code of others (a driver, a name service) can neither crash, nor hang,
/// nor leave anything behind in this process. Its standard streams are /dev/null, and it dies with this process.
///
/// Returns after `limit` at the latest, and one second more where the child has to be killed. A child that cannot even
/// be killed (a driver that hangs in the kernel) is left to whoever reaps this process's children. The caller must have
/// one thread: the child goes on from a fork.
ChildAnswer ask_in_child(const std::function<std::string()>& question, Duration limit);

}  // namespace lrun::inline core
