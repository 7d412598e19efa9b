#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lrun::launcher {

/// The end of tasks that did not end well, as srun tells it: 'srun: error: h2: task 1: Exited with exit code 2'.
struct TaskEnd {
  std::string nodes;  ///< 'h2', 'h[2-3]'
  std::string how;    ///< 'Exited with exit code 2', 'Killed'

  bool operator==(const TaskEnd&) const = default;
};

/// Reads srun's own lines in the bytes of its stderr, however they were cut. A value.
class SrunLines {
 public:
  /// The part of these bytes, and of those held back before, that is for the user: all but the note that a cluster
  /// which binds no task cannot be told to bind none. A line that srun may have begun is held back.
  std::string pass_on(std::string_view bytes);
  /// The bytes that are held back, at the end of the stream.
  std::string rest();
  /// The first task of which srun tells that it did not end well.
  [[nodiscard]] const std::optional<TaskEnd>& failed_task() const { return failed_task_; }

 private:
  std::string line_;            ///< of srun, so far
  bool is_of_another_ = false;  ///< the line that has begun is not srun's
  std::optional<TaskEnd> failed_task_;
};

}  // namespace lrun::launcher
