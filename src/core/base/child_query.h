#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/duration.h"
#include "base/event_loop.h"

namespace lrun::inline core {

/// The answer of a child process to a query, or why there is none.
struct ChildAnswer {
  enum class End {
    kAnswered,    ///< `text` is whole
    kCrashed,     ///< the child ended without an answer
    kTimedOut,    ///< it was killed at the deadline
    kNotStarted,  ///< no process or pipe could be made
  };
  End end = End::kNotStarted;
  std::string text;       ///< of kAnswered
  int signal_number = 0;  ///< of kCrashed: the signal that ended the child; 0 when it ended itself
  int error_number = 0;   ///< of kNotStarted

  bool operator==(const ChildAnswer&) const = default;
};

/// Runs `query` in a forked child and waits for its answer. Foreign code (a driver, a name service) can then neither
/// crash nor hang this process, nor leave anything behind in it. The child's standard streams are /dev/null, and it
/// dies with this process.
///
/// Returns after `limit` at the latest, and one second more where the child has to be killed. A child that cannot be
/// killed, because a driver hangs in the kernel, is left to the reaper of this process's children. The caller must
/// have one thread: the child goes on from a fork.
ChildAnswer query_in_child(const std::function<std::string()>& query, Duration limit);

/// query_in_child() beside a loop, which goes on meanwhile. Destroying the object ends the child and cancels the
/// callback. One thread.
class ChildQuery {
 public:
  /// \param answered  called once, by the loop; it may destroy this object.
  ChildQuery(EventLoop& loop, const std::function<std::string()>& query, Duration limit,
             std::function<void(const ChildAnswer&)> answered);
  ~ChildQuery();
  ChildQuery(const ChildQuery&) = delete;
  ChildQuery& operator=(const ChildQuery&) = delete;

 private:
  class Child;
  friend ChildAnswer query_in_child(const std::function<std::string()>& query, Duration limit);

  void report(const ChildAnswer& answer);

  std::unique_ptr<Child> child_;  ///< null where it could not be started
  std::function<void(const ChildAnswer&)> answered_;
  EventLoop::Watch readable_;
  EventLoop::Timer limit_;
};

}  // namespace lrun::inline core
