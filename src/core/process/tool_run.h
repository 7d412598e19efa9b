#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/fd.h"
#include "process/exit_status.h"
#include "process/pidfd.h"

namespace lrun::inline core {

/// An outside program that is asked something: a debugger, lrun itself.
struct ToolRequest {
  std::vector<std::string> argv;                          ///< argv[0] is the path of the program
  std::vector<std::string> environment;                   ///< NAME=VALUE
  Duration limit{0};                                      ///< asked to end then, and killed a second later
  std::size_t most_bytes = std::size_t{4} * 1024 * 1024;  ///< of each stream; more is thrown away

  bool operator==(const ToolRequest&) const = default;
};

/// What came of it.
struct ToolOutcome {
  int error_number = 0;              ///< of a start that failed
  bool timed_out = false;            ///< it was told to end
  std::optional<ExitStatus> status;  ///< empty when it did not start, or when somebody else reaped it
  std::string output;                ///< its stdout
  std::string errors;                ///< its stderr

  [[nodiscard]] bool succeeded() const { return status && status->success() && !timed_out; }
};

/// One run of an outside program below this process, with nothing to read, in a session of its own. It and what it
/// leaves in its process group never outlive its object; a killed lrun takes it along. One thread.
class ToolRun {
 public:
  using Done = std::function<void(ToolOutcome outcome)>;

  /// `done` is called once, by the loop, never from the constructor; it may destroy this object.
  ToolRun(EventLoop& loop, ToolRequest request, Done done);
  ~ToolRun();
  ToolRun(const ToolRun&) = delete;
  ToolRun& operator=(const ToolRun&) = delete;

 private:
  struct Stream {
    Fd fd;
    EventLoop::Watch readable;
  };

  void start();
  void read_from(Stream& stream, std::string& text);
  void watch_process();
  void look_at_process();
  void out_of_time();
  void finish_when_all_is_read();
  void finish();

  EventLoop& loop_;
  ToolRequest request_;
  Done done_;
  ToolOutcome outcome_;
  std::optional<PidFd> process_;
  bool ended_ = false;
  Stream output_;
  Stream errors_;
  EventLoop::Watch exit_;
  EventLoop::Timer look_;  ///< without a pidfd
  EventLoop::Timer timer_;
};

/// The environment of this process as NAME=VALUE without the variables named.
std::vector<std::string> environment_without(const std::vector<std::string>& names);

}  // namespace lrun::inline core
