#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "inspect/job_answers.h"
#include "inspect/rank_meter.h"
#include "inspect/run_status.h"
#include "run/rank_look.h"

namespace lrun::launcher {

/// Answers the questions of others about the ranks of this launcher: their status with their use of CPU and memory,
/// where they are, or where they stand still. One thread.
class OwnAnswers {
 public:
  using Reply = std::function<void(const std::string& answer)>;

  /// \param status  of this launcher
  /// \param standstill  LauncherStacks of its ranks as JSON, within most_answer_bytes(). Everything must outlive this.
  OwnAnswers(EventLoop& loop, LookAtRanks look, std::function<RunStatus()> status,
             std::function<std::string()> standstill);
  OwnAnswers(const OwnAnswers&) = delete;
  OwnAnswers& operator=(const OwnAnswers&) = delete;

  /// Gives `reply` a numbered_answer() of at most most_answer_bytes(), at once or within 36 seconds.
  void answer(const std::string& question, Reply reply);

 private:
  struct Look {
    struct Asker {
      Question question;
      Reply reply;
    };
    std::vector<Asker> askers;
    std::shared_ptr<void> under_way;
  };

  [[nodiscard]] std::string measured_status();
  void look(Look& look, bool brief);

  EventLoop& loop_;
  LookAtRanks look_at_;
  std::function<RunStatus()> status_;
  std::function<std::string()> standstill_;
  RankMeter meter_;
  Look full_;
  Look brief_;
};

}  // namespace lrun::launcher
