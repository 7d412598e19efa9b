#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/event_loop.h"
#include "inspect/control_socket.h"
#include "inspect/run_directory.h"
#include "plan/launch_plan.h"
#include "report/event_log.h"
#include "verdict/judge.h"

namespace lrun::launcher {

/// Most jobs begin before their wait is worth a record.
inline constexpr Duration kUnseenWait(1000);

/// The record of a launcher that waits for its job, or of a head that waits for its hosts: a folder in which no run has
/// begun, with a control socket. It goes with this, unless it is kept. One thread.
class WaitingRecord {
 public:
  /// \param run    the folder of the run that it would be, as RunDirectory has it
  /// \param part   of it, that is this launcher's
  /// \param names  names_of_run()
  /// \param began  the wait, with which the run is to begin
  /// \throws std::system_error  it cannot be made; nothing is left of it.
  WaitingRecord(EventLoop& loop, const std::filesystem::path& run, const std::string& part, const std::string& names,
                SteadyTime began, ControlSocket::Answer answer);
  ~WaitingRecord();
  WaitingRecord(const WaitingRecord&) = delete;
  WaitingRecord& operator=(const WaitingRecord&) = delete;

  /// It becomes the record of a run that ended before it began. A part that cannot be kept is missing.
  /// \param text  that was printed at the end, without colour
  void keep(const LaunchPlan& plan, const Verdict& verdict, const std::string& text);

 private:
  RunDirectory directory_;
  std::optional<ControlSocket> control_;
  EventLog events_;
  bool is_kept_ = false;
};

}  // namespace lrun::launcher
