#include "report/restart_text.h"

#include <fmt/format.h>

namespace lrun::launcher {
namespace {

std::string times_text(int times) { return times == 1 ? "once" : fmt::format("{} times", times); }

}  // namespace

std::string restart_text(const Verdict& attempt, const RestartChoice& choice, const LaunchPlan& plan, bool said,
                         bool colour) {
  if (choice.kind == RestartChoice::Kind::kResize) {
    return said ? std::string() : message_line(Severity::kNote, reason_text(attempt.end), colour);
  }
  const RestartHistory& history = choice.history;
  const int most = plan.max_restarts.value;
  std::string text = fmt::format("restart {}", history.used);
  if (history.before_checkpoint == 0) text += fmt::format(" of {}", most);
  if (choice.delay > Duration::zero()) text += " in " + format_duration(choice.delay);
  if (history.before_checkpoint > 0) {
    text += fmt::format(" ({} of {} since the newest checkpoint)", history.since_checkpoint(), most);
  }
  if (plan.checkpoint_path.given() && history.checkpoint_ns == 0) {
    text += fmt::format("; there is no checkpoint in '{}'", plan.checkpoint_path.value);
  }
  if (!said && attempt.culprit) text = cause_text(*attempt.culprit) + "; " + text;
  return message_line(Severity::kWarning, text, colour);
}

std::string restarts_text(RestartChoice::Kind last, int used, const LaunchPlan& plan) {
  switch (last) {
    case RestartChoice::Kind::kUsedUp:
      if (plan.checkpoint_path.given()) {
        const int last_ones = plan.max_restarts.value;
        return fmt::format("restarted {}; not again, because the last {} brought no newer checkpoint in '{}'",
                           times_text(used), last_ones == 1 ? "one" : std::to_string(last_ones),
                           plan.checkpoint_path.value);
      }
      return fmt::format("restarted {}, as often as allowed", times_text(used));
    case RestartChoice::Kind::kRepeats:
      return fmt::format("restarted {}; not again, because it failed twice with the same error within a minute",
                         times_text(used));
    case RestartChoice::Kind::kNone:
    case RestartChoice::Kind::kRestart:
    case RestartChoice::Kind::kResize:
      break;
  }
  return used > 0 ? "restarted " + times_text(used) : std::string();
}

}  // namespace lrun::launcher
