#include "plan/stop_signals.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string_view>

#include "base/own_signals.h"
#include "base/signal_names.h"
#include "base/split.h"
#include "base/user_error.h"

namespace lrun::launcher {
namespace {

/// The signal cannot be handled, or has a meaning of its own for lrun.
bool is_reserved(int number) {
  const int reserved[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGTSTP, SIGCONT, SIGPIPE};
  return is_private_signal(number) || std::find(std::begin(reserved), std::end(reserved), number) != std::end(reserved);
}

/// torchrun looks names up in Python's module 'signal': neither 'TERM' nor '15' is one of it.
std::optional<int> usable_signal(std::string_view name, const Personality& personality) {
  if (personality.only_full_signal_names && !name.starts_with("SIG")) return std::nullopt;
  const std::optional<int> number = parse_signal(name);
  return number && !is_reserved(*number) ? number : std::nullopt;
}

}  // namespace

StopSignals default_stop_signals() { return {{SIGTERM, SIGINT, SIGHUP, SIGQUIT}, "SIGTERM,SIGINT,SIGHUP,SIGQUIT"}; }

StopSignals choose_stop_signals(const Setting<std::string>& asked, const Personality& personality,
                                std::vector<std::string>& warnings) {
  if (asked.value.empty()) return default_stop_signals();
  StopSignals signals{{}, asked.value};
  for (const std::string& field : fields_of(asked.value)) {
    const std::string_view name = trimmed(field, " ");
    const std::optional<int> number = usable_signal(name, personality);
    if (number) {
      signals.numbers.push_back(*number);
    } else if (personality.only_full_signal_names) {
      warnings.push_back("'" + std::string(name) + "' of " + asked.origin + " cannot be handled and is left out");
    } else {
      throw UserError("'" + std::string(name) + "' of '" + asked.origin + "' is not a signal that can be handled",
                      "for example '" + asked.origin + " SIGTERM,SIGINT,SIGUSR1'");
    }
  }
  return signals;
}

}  // namespace lrun::launcher
