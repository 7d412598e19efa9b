#pragma once

#include <sys/types.h>

#include <string>

namespace lrun::detail {

/// The process that made a resource. A forked child gets a copy of the object, but neither its threads nor a place of
/// its own among the ranks, and must not touch memory that the parent shares with others.
///
/// Threads  any.
class OwnerProcess {
 public:
  /// The calling process.
  OwnerProcess();

  [[nodiscard]] bool is_this() const noexcept;
  /// \throws lrun::Error  in another process: `what` belongs to its parent.
  void require(const std::string& what) const;

 private:
  pid_t pid_;
};

}  // namespace lrun::detail
