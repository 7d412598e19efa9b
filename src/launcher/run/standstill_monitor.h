#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "inspect/control_socket.h"
#include "inspect/rank_meter.h"
#include "inspect/standstill.h"
#include "logs/log_router.h"
#include "report/message_sink.h"
#include "report/stack_text.h"
#include "run/attempt.h"
#include "run/rank_look.h"

namespace lrun::launcher {

/// Notes, within ten seconds, that the Python ranks of an attempt wait for each other in vain, and where each is. While
/// one waits for the others to begin, that may take twenty; where they went on after a note, twice as long as they had
/// stood still. The run goes on: --hang-timeout ends it. Ranks are looked at only while none prints anything and the
/// main thread of one rests. Where all wait here, the first launchers of a job ask the others whether theirs stand
/// still, too. One thread.
class StandstillMonitor {
 public:
  struct Facts {
    Attempt& attempt;
    const LogRouter& logs;
    MessageSink& sink;
    const LookAtRanks& look;
    pid_t launcher = 0;  ///< the process above all ranks
    /// Asks all launchers of the job for standing_still(); never called in a run that is alone.
    std::function<void(const ControlSocket::Reply& reply)> ask = {};
    Duration period = std::chrono::milliseconds(1500);  ///< from one look to the next
  };

  /// All that is named by `facts` must outlive this.
  StandstillMonitor(EventLoop& loop, Facts facts);

  /// Call it before another sample of the ranks' stacks begins.
  void end_look() { looking_.reset(); }

  /// For the other launchers of the job. Without samples: the ranks here move.
  [[nodiscard]] LauncherStacks standing_still() const;

 private:
  void look_again();
  void ranks_move();
  [[nodiscard]] bool may_stand_still();
  [[nodiscard]] bool quiet_since_last_look();
  void saw(std::vector<StackSample> samples);
  [[nodiscard]] TwoLooks looks_at_store() const;
  [[nodiscard]] std::vector<int> busy_ranks();
  void ask_others();
  [[nodiscard]] bool is_long(const Standstill& standstill, Duration lasted) const;
  void heard(const std::string& answers);
  void tell(const Standstill& standstill, Duration lasted, bool whole_world);

  EventLoop& loop_;
  Facts facts_;
  std::map<pid_t, std::int64_t> activity_;  ///< activity_of() each worker, at the last look
  SteadyTime looked_;                       ///< when the last look began
  RankMeter meter_;
  std::vector<StackSample> before_;  ///< empty: the ranks moved, or were not looked at
  SteadyTime since_;                 ///< of before_
  SteadyTime seen_;                  ///< the same: the last look
  bool told_ = false;                ///< the same: a note was written
  Duration lesson_ = {};             ///< ranks that stand still for less may go on: once they did, after a note
  std::shared_ptr<void> looking_;    ///< while stacks are being asked for
  std::shared_ptr<void> asking_;     ///< the others
  EventLoop::Timer timer_;
};

}  // namespace lrun::launcher
