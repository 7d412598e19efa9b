#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace lrun {

/// RLIMIT_NOFILE as this process found it, and as it raised it for itself. Workers get the original back: a raised soft
/// limit breaks programs that use select() or close every possible descriptor.
class FileLimit {
 public:
  /// Raises the soft limit to the hard one.
  static FileLimit raise_to_hard();

  [[nodiscard]] const struct rlimit& original() const { return original_; }
  /// Descriptors this process may open in all.
  [[nodiscard]] std::size_t available() const { return available_; }

 private:
  struct rlimit original_ {};
  std::size_t available_ = 0;
};

}  // namespace lrun
