#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
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

/// Notes, within ten seconds, that the ranks of an attempt wait for each other in vain, and where each is. While one
/// waits for the others to begin, that may take twenty; where they went on after a note, twice as long as they had
/// stood still. The run goes on: --hang-timeout ends it.
///
/// Ranks of Python are looked at, only while none prints anything and the main thread of one rests. Ranks of liblrun
/// say themselves in which collective operation they wait: /proc is read once one has waited since the last time, and
/// the stacks of all for the note, which stops each for a moment. In a job of several launchers the first ones ask the
/// others whether their ranks stand still, too. One thread.
class StandstillMonitor {
 public:
  struct Facts {
    Attempt& attempt;
    const LogRouter& logs;
    MessageSink& sink;
    const LookAtRanks& look;
    pid_t launcher = 0;        ///< the process above all ranks
    bool reads_python = true;  ///< the ranks run it
    /// Asks all launchers of the job for standing_still() or stacks; never called in a run that is alone.
    std::function<void(std::string_view words, const ControlSocket::Reply& reply)> ask = {};
    Duration period = std::chrono::milliseconds(1500);  ///< from one look to the next
  };

  /// All that is named by `facts` must outlive this.
  StandstillMonitor(EventLoop& loop, Facts facts) : loop_(loop), facts_(std::move(facts)), looked_(steady_now()) {}

  /// Looks from now on, and before that at nothing: a program that meets no other is never waited for in vain.
  void begin();

  /// Call it before another sample of the ranks' stacks begins.
  void end_look();

  /// For the other launchers of the job. Without samples: the ranks here move.
  [[nodiscard]] LauncherStacks standing_still() const;

 private:
  void look_again();
  [[nodiscard]] bool are_running() const;
  void ranks_move();
  void end_closer_look();
  [[nodiscard]] bool has_calls() const;
  [[nodiscard]] bool has_whole_world() const;
  [[nodiscard]] ReportedCall call_of(std::size_t worker) const;
  void add_calls(std::vector<StackSample>& samples) const;
  [[nodiscard]] bool may_stand_still(bool calls);
  [[nodiscard]] bool quiet_since_last_look();
  void saw(std::vector<StackSample> samples);
  [[nodiscard]] TwoLooks looks_at_store() const;
  [[nodiscard]] std::vector<int> busy_ranks(const TwoLooks& looks);
  void ask_others();
  [[nodiscard]] bool is_long(const Standstill& standstill, Duration lasted) const;
  void heard(const std::string& answers);
  void found(const Standstill& standstill, TwoLooks looks, Duration lasted);
  void look_closer(std::function<void(std::vector<StackSample> samples)> seen);
  void tell(const Standstill& standstill, Duration lasted);

  EventLoop& loop_;
  Facts facts_;
  std::map<pid_t, ReportedCall> calls_;     ///< of each worker at the last look: the call in which it waits
  std::map<pid_t, std::int64_t> activity_;  ///< the same: activity_of() it, where it is asked for
  SteadyTime looked_;                       ///< when the last look began
  RankMeter meter_;
  std::map<pid_t, std::int64_t> wakes_;  ///< the same: activity_of_threads()
  std::vector<StackSample> before_;      ///< empty: the ranks moved, or were not looked at
  SteadyTime since_;                     ///< of before_
  SteadyTime seen_;                      ///< the same: the last look
  bool told_ = false;                    ///< the same: a note was written
  Duration lesson_ = {};                 ///< ranks that stand still for less may go on: once they did, after a note
  std::shared_ptr<void> looking_;        ///< while stacks are being asked for
  std::shared_ptr<void> asking_;         ///< the others
  std::shared_ptr<void> closer_;         ///< while stacks are read for a note
  Duration pause_ = {};                  ///< until the next look
  EventLoop::Timer timer_;
};

}  // namespace lrun::launcher
