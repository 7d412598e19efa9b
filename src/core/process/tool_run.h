#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "process/exit_status.h"
#include "process/helper_program.h"

namespace lrun::inline core {

/// A helper program that is asked one thing: a debugger, lrun itself.
struct ToolRequest {
  std::vector<std::string> argv;                          ///< argv[0] is the path of the program
  std::vector<std::string> environment;                   ///< NAME=VALUE
  Duration limit{0};                                      ///< it gets SIGTERM then, and SIGKILL a second later
  std::size_t most_bytes = std::size_t{4} * 1024 * 1024;  ///< of each stream; more is thrown away

  bool operator==(const ToolRequest&) const = default;
};

/// The answer of the tool.
struct ToolOutcome {
  int error_number = 0;              ///< of a start that failed
  bool timed_out = false;            ///< it was stopped at its limit
  std::optional<ExitStatus> status;  ///< empty when it did not start, or when another part of lrun reaped it
  std::string output;                ///< its stdout
  std::string errors;                ///< its stderr

  [[nodiscard]] bool succeeded() const { return status && status->success() && !timed_out; }
};

/// One run of a tool, with nothing to read. The tool, and what it leaves in its process group, never outlives its
/// object; a killed lrun takes it along. One thread.
class ToolRun {
 public:
  using Done = std::function<void(ToolOutcome outcome)>;

  /// `done` is called once, by the loop, never from the constructor; it may destroy this object.
  ToolRun(EventLoop& loop, ToolRequest request, Done done);
  ToolRun(const ToolRun&) = delete;
  ToolRun& operator=(const ToolRun&) = delete;

 private:
  void start(ToolRequest request);
  void out_of_time();
  void finish();

  EventLoop& loop_;
  std::size_t most_bytes_;
  Done done_;
  ToolOutcome outcome_;
  std::optional<HelperProgram> program_;
  EventLoop::Timer timer_;
};

/// The environment of this process as NAME=VALUE without the variables named.
std::vector<std::string> environment_without(const std::vector<std::string>& names);

}  // namespace lrun::inline core
