#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/fd.h"
#include "plan/launch_plan.h"
#include "process/forked_helper.h"
#include "process/guard.h"
#include "report/message_sink.h"
#include "run/machine_notice.h"

namespace lrun::launcher {

/// Learns from a child process, which looks again and again, that this machine is about to go. Warns where the place of
/// the notice cannot be asked, or does not answer: at once where the first answer shows that it is no such place, and
/// else after a while. One thread.
class NoticeMonitor {
 public:
  struct Facts {
    EventLoop& loop;
    std::string place;  ///< as the user wrote it: 'aws', '/run/going'
    std::string of;     ///< whose child it is, for `ps`: 'process 17, run a'
    std::function<NoticeLook()> look;
    Duration pause;     ///< between the beginnings of two looks, by the clock on the wall
    Duration patience;  ///< without an answer that can be understood
  };

  /// Starts the child, and again where it is killed. A run goes on without one, with a warning. The loop must outlive
  /// this, and the sink this or the next call of tell().
  NoticeMonitor(Facts facts, MessageSink& sink);
  NoticeMonitor(const NoticeMonitor&) = delete;
  NoticeMonitor& operator=(const NoticeMonitor&) = delete;

  /// Runs the loop until the first look is over, at most for `limit`.
  void wait_for_first_look(Duration limit);

  /// Sets who is told from now on: `noticed` gets the notice once, from the loop, also one that has come before; empty:
  /// nobody. `sink` gets the warnings.
  void tell(MessageSink& sink, std::function<void(const std::string& notice)> noticed);

  /// 'notice from AWS: terminate at 2026-11-30T08:22:00Z'. Empty: none has come.
  [[nodiscard]] const std::string& notice() const { return notice_; }
  /// Of the child; 0: it has ended.
  [[nodiscard]] pid_t pid() const { return child_ ? child_->pid() : 0; }
  /// Tells nothing any more. The child, which a file system may hold, ends with this object.
  void stop();

 private:
  void start();
  void child_ended();
  void read();
  void saw(std::string_view line);
  void wait_for_answer();
  void warn(std::string_view what);
  void tell_soon();

  Facts facts_;
  MessageSink* sink_;
  std::function<void(const std::string& notice)> noticed_;
  std::string notice_;
  std::string problem_;  ///< of the last look
  std::string unread_;   ///< the beginning of a line
  int starts_ = 0;       ///< of the child
  bool has_answered_ = false;
  bool is_awaited_ = false;  ///< by wait_for_first_look()
  bool has_warned_ = false;
  Fd news_;
  std::optional<ForkedHelper> child_;
  EventLoop::Watch readable_;
  EventLoop::Timer silence_;  ///< since the last answer that was understood
  EventLoop::Timer restart_;
  EventLoop::Timer telling_;
};

/// Looks where the plan says, and returns after the first look, or after 2 seconds: on a machine that is about to go
/// nothing should start. nullptr: the plan does not want notices.
std::unique_ptr<NoticeMonitor> watch_for_notice(EventLoop& loop, const LaunchPlan& plan, const Guard& guard,
                                                MessageSink& sink);

}  // namespace lrun::launcher
