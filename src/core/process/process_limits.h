#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <optional>

namespace lrun::inline core {

/// A limit for a child.
struct ProcessLimit {
  int resource = 0;  ///< RLIMIT_CORE, ...
  struct rlimit value {};

  /// `soft` and `hard` where they are given; without `hard`, the hard limit is this process's, raised to `soft` if need
  /// be.
  static ProcessLimit of(int resource, rlim_t soft, std::optional<rlim_t> hard);

  /// Whether a child of this process may be given it: raising a hard limit takes a privilege.
  [[nodiscard]] bool is_allowed() const;
};

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

}  // namespace lrun::inline core
