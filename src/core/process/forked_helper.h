#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "process/pidfd.h"

namespace lrun::inline core {

/// The name of the launcher's child that copies files in memory to other nodes.
inline constexpr const char* kCopierName = "memory-copier";
/// The name of the one that looks for a notice that this machine is about to go.
inline constexpr const char* kNoticeName = "notice-watcher";

/// A child that goes on in a copy of this process and works for it: files and networks that hang hold up the child
/// alone. Its standard streams are /dev/null, and all signals are blocked, since a manager signals all processes of a
/// job; it ends with its parent. One thread.
class ForkedHelper {
 public:
  struct Request {
    std::function<int()> function;      ///< what it runs; an exception ends it, as it does with a code
    std::vector<int> descriptors = {};  ///< that it keeps; all others are closed
    std::string name;                   ///< of its process
    std::string of;                     ///< whose it is, for `ps`: 'process 17, run a'
  };

  /// The caller must have one thread.
  /// \throws std::system_error  there is no process or descriptor, or the kernel has no pidfds.
  explicit ForkedHelper(const Request& request);
  /// Kills it, and waits for its end, a second at most.
  ~ForkedHelper();
  ForkedHelper(const ForkedHelper&) = delete;
  ForkedHelper& operator=(const ForkedHelper&) = delete;

  /// 0 once it has ended.
  [[nodiscard]] pid_t pid() const { return child_.wait_until_ended(Duration::zero()) ? 0 : child_.pid(); }

 private:
  PidFd child_;
};

}  // namespace lrun::inline core
