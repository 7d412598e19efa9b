#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/event_loop.h"
#include "inspect/control_socket.h"
#include "plan/launch_plan.h"
#include "report/event_log.h"
#include "report/message_sink.h"
#include "run/attempt.h"
#include "run/run_folders.h"

namespace lrun::launcher {

/// The record of a run that others see: its folders, events.jsonl, the control socket, and result.json at the end. A
/// part that cannot be kept causes one warning, and the run goes on without it. One thread.
class RunRecord {
 public:
  /// Everything must outlive this. \param part  as RunFolders has it
  RunRecord(EventLoop& loop, const LaunchPlan& plan, const Environment& environment, MessageSink& sink,
            const std::string& part = {});

  /// Answers the commands that come through the control socket. To be set before open().
  void set_answer(ControlSocket::Answer answer) { answer_ = std::move(answer); }

  /// Makes the folders before workers are started, and again those that somebody has removed.
  /// \param has_to_log  without a folder for log files there can be no run
  /// \throws std::system_error  as RunFolders::make().
  void make_folders(bool has_to_log);
  /// Call it when the workers run: others may see the run and send commands. Events wait until attempt_started().
  void open();
  /// Does nothing before open() and where no record is kept.
  [[nodiscard]] EventLog& events() { return events_; }
  [[nodiscard]] const RunFolders& folders() const { return folders_; }

  /// All workers of an attempt run, or the rest will not be started.
  void attempt_started(const LaunchPlan& plan, const Attempt& attempt);
  /// The same of a head, which has no workers.
  void head_started(const LaunchPlan& plan);
  /// Removes the oldest runs of this user beyond the number that is kept.
  /// \param at_once  false: only where there are many more, since a short run has no time for it
  void prune_others(bool at_once) const;

  /// Call it when the run is over: stops answering commands, and removes an unused folder for log files.
  void close();
  /// \param text  the verdict as it is printed, without colour
  void write_result(const Verdict& verdict, const std::vector<FailureRecord>& records, const std::string& text,
                    const std::string& hint);
  /// Removes the record of a run that did not begin.
  void remove() { folders_.remove(); }

 private:
  EventLoop& loop_;
  const Environment& environment_;
  MessageSink& sink_;
  std::string run_id_;
  RunFolders folders_;
  EventLog events_;
  ControlSocket::Answer answer_;
  std::optional<ControlSocket> control_;
  bool has_started_ = false;  ///< events_ know of the run
};

}  // namespace lrun::launcher
