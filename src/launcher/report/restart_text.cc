#include "report/restart_text.h"

#include <fmt/format.h>

namespace lrun::launcher {
namespace {

std::string times_text(int times) { return times == 1 ? "once" : fmt::format("{} times", times); }

}  // namespace

std::string restart_text(const Verdict& attempt, const RestartChoice& choice, int most, bool said, bool colour) {
  if (choice.kind == RestartChoice::Kind::kResize) {
    return said ? std::string() : message_line(Severity::kNote, reason_text(attempt.end), colour);
  }
  std::string text = fmt::format("restart {} of {}", choice.history.used, most);
  if (choice.delay > Duration::zero()) text += " in " + format_duration(choice.delay);
  if (!said && attempt.culprit) text = cause_text(*attempt.culprit) + "; " + text;
  return message_line(Severity::kWarning, text, colour);
}

std::string restarts_text(RestartChoice::Kind last, int used) {
  switch (last) {
    case RestartChoice::Kind::kUsedUp:
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
