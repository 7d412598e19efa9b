#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/environment.h"
#include "base/event_loop.h"
#include "inspect/job_answers.h"
#include "multihost/head.h"
#include "plan/launch_plan.h"
#include "report/message_sink.h"
#include "run/run_record.h"
#include "run/waiting_record.h"

namespace lrun::launcher {

/// The record of a run where it was typed, for `lrun runs`, `again` and `status` there: the part 'head_of_run' of the
/// run's folder. The launchers on the hosts keep those with workers and log files. Before the run has begun it is a
/// WaitingRecord. One thread.
class HeadRecord {
 public:
  /// Everything must outlive this. \param order  of any of the hosts
  HeadRecord(EventLoop& loop, const NodeOrder& order, const Environment& environment, MessageSink& sink);

  /// The head waits for its hosts. It must outlive the loop's run.
  void wait(Head& head);
  /// The run has begun. One that ends before is kept, too.
  void begin();
  /// A host has answered a question.
  void told(const std::string& answer) { answers_.add(answer); }
  void end(const Head& head, const Head::End& end);

 private:
  void show_wait();
  void answer(std::string_view command, const ControlSocket::Reply& reply);
  [[nodiscard]] RunStatus status() const;

  EventLoop& loop_;
  const Environment& environment_;
  LaunchPlan plan_;  ///< as much of it as a record needs
  RunRecord record_;
  Head* head_ = nullptr;  ///< since wait()
  JobAnswers answers_;
  EventLoop::Timer show_;
  std::optional<WaitingRecord> waiting_;
  bool has_begun_ = false;
  SteadyTime began_ = {};
  std::int64_t began_ms_ = 0;  ///< since the epoch
};

}  // namespace lrun::launcher
